package progress

import (
	"encoding/json"
	"io"

	"github.com/openpai/paictl/pkg/cluster/engine"
)

// JSON writes one event per line, with the JSON field names of engine.Event. Durations are in nanoseconds.
type JSON struct{ *jsonLines[engine.Event] }

// NewJSON returns a renderer that writes JSON lines to w.
func NewJSON(w io.Writer) *JSON { return &JSON{newJSONLines[engine.Event](w)} }

// jsonLines writes events of any kind, one per line.
type jsonLines[E any] struct {
	enc *json.Encoder
	err error
}

func newJSONLines[E any](w io.Writer) *jsonLines[E] {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return &jsonLines[E]{enc: enc}
}

// Emit writes an event. After the first write error it writes nothing, because a run must not stop when the program that reads the events has
// exited.
func (j *jsonLines[E]) Emit(e E) {
	if j.err == nil {
		j.err = j.enc.Encode(e)
	}
}

// Close returns the first write error.
func (j *jsonLines[E]) Close() error { return j.err }
