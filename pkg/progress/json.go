package progress

import (
	"encoding/json"
	"io"

	"github.com/openpai/paictl/pkg/cluster"
)

// JSON writes one event per line, as cluster.Event spells it. Durations are nanoseconds.
type JSON struct {
	enc *json.Encoder
	err error
}

// NewJSON returns a renderer that writes JSON lines to w.
func NewJSON(w io.Writer) *JSON {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return &JSON{enc: enc}
}

// Emit implements cluster.Sink. After the first write error nothing more is written: a
// reader that went away must not stop the run.
func (j *JSON) Emit(e cluster.Event) {
	if j.err == nil {
		j.err = j.enc.Encode(e)
	}
}

// Close returns the first write error.
func (j *JSON) Close() error { return j.err }
