package conversation

import "errors"

// ErrNotFound says that there is no such record in this workspace.
var ErrNotFound = errors.New("not found")
