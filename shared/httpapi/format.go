package httpapi

import (
	"bytes"
	"encoding/json"
	"io"

	"github.com/danielgtaylor/huma/v2"
)

// jsonFormat keeps numbers and characters as they were sent.
var jsonFormat = huma.Format{
	Marshal: func(w io.Writer, value any) error {
		encoder := json.NewEncoder(w)
		encoder.SetEscapeHTML(false)
		return encoder.Encode(value)
	},
	Unmarshal: func(data []byte, value any) error {
		decoder := json.NewDecoder(bytes.NewReader(data))
		decoder.UseNumber()
		return decoder.Decode(value)
	},
}
