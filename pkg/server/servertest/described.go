package servertest

import (
	"bytes"
	"cmp"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/server"
	"github.com/openpai/paictl/pkg/server/openapi"
)

// description is the OpenAPI document of a server, with its compiled schemas.
type description struct {
	once     sync.Once
	mu       sync.Mutex
	compiler *jsonschema.Compiler
	known    map[string]*jsonschema.Schema
}

const document = "openapi.json"

// throughDoor is the media type of proxied responses, which the OpenAPI document doesn't describe.
const throughDoor = "*/*"

// described asserts that a response conforms to the server's OpenAPI document. It checks the body, and the code of an error.
func (s *Server) described(r *http.Request, a *Answer) {
	s.t.Helper()
	if s.Assembly == nil || !strings.HasPrefix(a.Header.Get("Content-Type"), "application/json") || a.Header.Get("Content-Encoding") != "" || r.Method == http.MethodHead {
		return
	}
	route := s.Server.Match(r)
	if route == nil || route.Path == openapi.Path || route.Media == throughDoor || route.Media != "" && a.Status < http.StatusBadRequest {
		return
	}
	response := "default"
	if a.Status < http.StatusBadRequest {
		response = strconv.Itoa(a.Status)
		assert.True(s.t, a.Status == cmp.Or(route.Status, http.StatusOK) || route.Accepts && a.Status == http.StatusAccepted, "%s %s: the status of success is %d", route.Method, route.Path, a.Status)
	} else {
		assert.True(s.t, slices.Contains(route.Errors, a.Code()) || slices.Contains(openapi.Always(), a.Code()), "%s %s: name the code %q in Errors: %s", route.Method, route.Path, a.Code(), a.Body)
	}
	schema := s.schema(route, response)
	body, err := jsonschema.UnmarshalJSON(strings.NewReader(a.Body))
	require.NoError(s.t, err, a.Body)
	assert.NoError(s.t, schema.Validate(body), "%s %s: %d %s", route.Method, route.Path, a.Status, a.Body)
}

func (s *Server) schema(route *server.Route, response string) *jsonschema.Schema {
	s.t.Helper()
	d := s.description
	d.once.Do(func() {
		w := httptest.NewRecorder()
		s.Server.ServeHTTP(w, httptest.NewRequestWithContext(s.t.Context(), http.MethodGet, openapi.Path, nil))
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(w.Body.Bytes()))
		require.NoError(s.t, err, w.Body)
		d.known, d.compiler = map[string]*jsonschema.Schema{}, jsonschema.NewCompiler()
		d.compiler.DefaultDraft(jsonschema.Draft2020)
		require.NoError(s.t, d.compiler.AddResource(document, doc))
	})
	d.mu.Lock()
	defer d.mu.Unlock()
	path := strings.NewReplacer("~", "~0", "/", "~1").Replace(openapi.Spelled(route.Path))
	at := document + "#/paths/" + path + "/" + strings.ToLower(cmp.Or(route.Method, http.MethodGet)) + "/responses/" + response + "/content/application~1json/schema"
	if d.known[at] == nil {
		schema, err := d.compiler.Compile(at)
		require.NoError(s.t, err, at)
		d.known[at] = schema
	}
	return d.known[at]
}
