package lifecycle

// Threads takes text conversations through their lives.
type Threads struct{ Parts }
