package clients

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"
)

// request is a request that a client sends, with the checks of its response.
type request struct {
	// Why explains why the client sends the request.
	Why  string `yaml:"why"`
	Send string `yaml:"send"` // METHOD PATH
	// Headers holds all headers that the client sends, except the headers that its HTTP library adds.
	Headers map[string]string `yaml:"headers"`
	Body    string            `yaml:"body"`
	// Status lists the statuses that the client treats as success, or expects.
	Status []int  `yaml:"status"`
	Type   string `yaml:"type"` // how Content-Type begins; "" is any
	// Read maps places in the JSON to the values that the client reads there. "*" means any value that isn't empty.
	Read map[string]any `yaml:"read"`
	// Keep stores values of the response under names. Later requests can contain these names.
	Keep map[string]string `yaml:"keep"`
	// Until repeats the request until the value at a place is one of the listed values.
	Until map[string][]string `yaml:"until"`
}

// replay sends the requests of a client, and keeps the stored values.
type replay struct {
	w     *world
	names map[string]string
}

func (r *replay) fill(text string) string {
	for name, value := range r.names {
		text = strings.ReplaceAll(text, "$"+name, value)
	}
	return text
}

func replays(t *testing.T, w *world, file string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", file))
	require.NoError(t, err)
	d := yaml.NewDecoder(bytes.NewReader(data))
	d.KnownFields(true)
	var all []request
	require.NoError(t, d.Decode(&all))
	name := strings.TrimSuffix(file, ".yaml")
	w.person(name)
	r := &replay{w, map[string]string{"NAME": name, "WORD": strings.ReplaceAll(password, " ", "%20"), "PASSWORD": password}}
	for i := range all {
		r.one(t, &all[i])
	}
}

func (r *replay) one(t *testing.T, q *request) {
	t.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	for {
		value := r.ask(t, q)
		again := false
		for place, want := range q.Until {
			again = again || !slices.Contains(want, text(at(value, place)))
		}
		if !again {
			for place, want := range q.Read {
				compare(t, q, want, at(value, place), place)
			}
			for name, place := range q.Keep {
				r.names[name] = text(at(value, place))
			}
			return
		}
		require.True(t, time.Now().Before(deadline), "%s: %s", q.Why, q.Send)
		time.Sleep(200 * time.Millisecond) // the clients do so, too, and longer
	}
}

func compare(t *testing.T, q *request, want, got any, place string) {
	t.Helper()
	if want == "*" {
		assert.NotEmpty(t, got, "%s: %s: %s", q.Why, q.Send, place)
		return
	}
	if n, ok := want.(int); ok {
		want = float64(n)
	}
	assert.Equal(t, want, got, "%s: %s: %s", q.Why, q.Send, place)
}

// ask sends a request, and returns the JSON of the response, or its text.
func (r *replay) ask(t *testing.T, q *request) any {
	t.Helper()
	method, path, _ := strings.Cut(r.fill(q.Send), " ")
	req, err := http.NewRequestWithContext(t.Context(), method, r.w.URL+path, strings.NewReader(r.fill(q.Body)))
	require.NoError(t, err)
	for name, value := range q.Headers {
		req.Header.Set(name, r.fill(value))
	}
	resp, err := r.w.client.Do(req)
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Contains(t, q.Status, resp.StatusCode, "%s: %s: %s", q.Why, q.Send, body)
	assert.True(t, strings.HasPrefix(resp.Header.Get("Content-Type"), q.Type), "%s: %s: Content-Type: %s", q.Why, q.Send, resp.Header.Get("Content-Type"))
	var out any
	if json.Unmarshal(body, &out) != nil {
		return string(body)
	}
	return out
}

func text(v any) string {
	s, _ := v.(string)
	return s
}
