package httpapi

import (
	"crypto/sha256"
	"encoding/base64"
	"strings"
)

// A cursor is base64url of a version, a checksum over the list's name, its filters and
// the position, and the position itself. It names no workspace, which comes from the key;
// the checksum is no secret, it tells a cursor that was changed or belongs elsewhere.
const (
	cursorVersion  = "1"
	checksumLength = 8
)

func writeCursor(list, position string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(cursorVersion + checksum(list, position) + position))
}

// readCursor returns the position of a cursor that writeCursor made for the same list.
func readCursor(list, cursor string) (position string, ok bool) {
	raw, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil || base64.RawURLEncoding.EncodeToString(raw) != cursor { // it decodes other texts, too
		return "", false
	}
	rest, ok := strings.CutPrefix(string(raw), cursorVersion)
	if !ok || len(rest) <= checksumLength {
		return "", false
	}
	position = rest[checksumLength:]
	return position, rest[:checksumLength] == checksum(list, position)
}

func checksum(list, position string) string {
	sum := sha256.Sum256([]byte(cursorVersion + list + "\x00" + position))
	return string(sum[:checksumLength])
}
