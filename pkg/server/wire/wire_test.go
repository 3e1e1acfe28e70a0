package wire_test

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/server/wire"
)

type login struct {
	Username   string `json:"username"`
	Password   string `json:"password"`
	Expiration *int   `json:"expiration"`
}

type patch struct {
	Patch bool `json:"patch"`
	Data  struct {
		Username string   `json:"username"`
		VCs      []string `json:"virtualCluster"`
	} `json:"data"`
}

func request(media, body string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
	r.Header.Set("Content-Type", media)
	return r
}

func TestBodiesAreReadWhateverTheClientCallsThem(t *testing.T) {
	n := 4000
	want := login{"alice", "s=e&c", &n}
	for name, r := range map[string]*http.Request{
		"JSON":                                request("application/json", `{"username":"alice","password":"s=e&c","expiration":4000}`),
		"a number as text":                    request("application/json", `{"username":"alice","password":"s=e&c","expiration":"4000"}`),
		"JSON as the portal sends it":         request("text/plain;charset=UTF-8", ` {"username":"alice","password":"s=e&c","expiration":4e3}`),
		"a form, as the SDK sends it":         request("application/x-www-form-urlencoded", `username=alice&password=s%3De%26c&expiration=4000`),
		"JSON that curl calls a form":         request("application/x-www-form-urlencoded", `{"username":"alice","password":"s=e&c","expiration":4000}`),
		"JSON in a JSON string":               request("application/json", `"{\"username\":\"alice\",\"password\":\"s=e&c\",\"expiration\":4000}"`),
		"a form whose last value counts":      request("", `username=bob&username=alice&password=s%3De%26c&expiration=4000`),
		"a null is as if it weren't there":    request("", `{"username":"alice","password":"s=e&c","expiration":4000}`),
		"a key of a form, no value elsewhere": request("", `expiration=4000&username=alice&password=s%3De%26c`),
	} {
		got := login{}
		require.NoError(t, wire.Body(r, &got), name)
		assert.Equal(t, want, got, name)
	}
	got := patch{}
	require.NoError(t, wire.Body(request("text/plain", `{"patch":"true","data":"{\"username\":\"bob\",\"virtualCluster\":[\"a\",\"b\"]}"}`), &got))
	assert.True(t, got.Patch)
	assert.Equal(t, "bob", got.Data.Username)
	assert.Equal(t, []string{"a", "b"}, got.Data.VCs)
	require.NoError(t, wire.Body(request("", "  "), &login{}), "a body may be missing")
}

func TestErrorsNameKeysAndNeverValues(t *testing.T) {
	const secret = "hunter2hunter2"
	for body, want := range map[string]string{
		`{"username":"a","role":"` + secret + `"}`:                     `"role" is not allowed`,
		`{"expiration":"` + secret + `"}`:                              `"expiration" must be an integer`,
		`{"username":{"a":"` + secret + `"}}`:                          `"username" must be a string`,
		`{"username":"a"} {"password":"` + secret + `"}`:               "the body has more than one JSON value",
		`{"username":"` + secret:                                       "the body is malformed JSON",
		`["` + secret + `"]`:                                           "the body must be an object",
		`"` + secret + `"`:                                             "the body is a JSON string, and no object",
		secret:                                                         "the body is neither JSON nor a form",
		`%zz=` + secret:                                                "the body is neither JSON nor a form",
		strings.Repeat("[", 100) + `"` + secret:                        "the body is nested too deeply",
		`{"` + strings.Repeat("k", 200) + `":"` + secret + `"}`:        `"` + strings.Repeat("k", 64) + `…" is not allowed`,
		`{"expiration":1e300,"password":"` + secret + `"}`:             `"expiration" must be an integer`,
		"username=\xff" + secret:                                       "the body is not UTF-8",
		`{"expiration":99999999999999999999,"x":"` + secret + `"}`:     "",
		`{"username":"a","password":"b","password2":"` + secret + `"}`: `"password2" is not allowed`,
	} {
		err := wire.Body(request("", body), &login{})
		require.Error(t, err, body)
		assert.Contains(t, err.Error(), want)
		assert.NotContains(t, err.Error(), secret)
	}
}

// Clients that aren't signed in may send such bodies to the sign-in routes.
func TestABodyTakesNoMoreMemoryThanWhatIsWantedOfIt(t *testing.T) {
	many := func(part string) string { return strings.Repeat(part, 100_000/len(part)) }
	for name, body := range map[string]string{
		"objects instead of one":      "[" + strings.TrimSuffix(many(`{"":0},`), ",") + "]",
		"objects in a key":            `{"username":[` + strings.TrimSuffix(many(`{"":0},`), ",") + `]}`,
		"objects in an unknown key":   `{"a":[` + strings.TrimSuffix(many(`{"":0},`), ",") + `]}`,
		"keys":                        "{" + strings.TrimSuffix(many(`"":0,`), ",") + "}",
		"arrays in a string":          `"[` + strings.TrimSuffix(many(`[],`), ",") + `]"`,
		"arrays in strings of arrays": `{"data":{"virtualCluster":[` + strings.TrimSuffix(many(`"",`), ",") + `]}}`,
		"a form":                      "a=" + many("&b"),
		"numbers for texts":           `{"username":"a","data":` + strings.Repeat("1", 99_000) + "}",
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		require.Error(t, wire.Body(request("", body), &patch{}), name)
		runtime.ReadMemStats(&after)
		assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(5<<18), name) // the race detector's own copies included
	}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/x?limit=1"+many("&b"), nil)
	assert.ErrorContains(t, wire.Decode(r, &query{}), "more than 1000 keys")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	require.NoError(t, wire.Body(request("", `{"a":[`+strings.Repeat(`{"":0},`, 4999)+`0]}`), &map[string]any{}))
	runtime.ReadMemStats(&after)
	assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(4<<20), "the most that any body takes")
	assert.ErrorContains(t, wire.Body(request("", `{"a":[`+strings.Repeat(`{"":0},`, 9999)+`0]}`), &map[string]any{}), "more than 20000 values")
}

func TestOfAKeyThatComesAgainTheLastValueCounts(t *testing.T) {
	got := patch{}
	require.NoError(t, wire.Body(request("", `{"data":{"username":"bob","virtualCluster":["a","b"]},"data":{"virtualCluster":["c"]},"patch":true,"patch":null}`), &got))
	assert.Equal(t, []string{"c"}, got.Data.VCs)
	assert.Empty(t, got.Data.Username)
	assert.False(t, got.Patch)
}

func TestABodyThatIsTooLargeIs413(t *testing.T) {
	r := request("", `{"username":"`+strings.Repeat("a", 100)+`"}`)
	r.Body = http.MaxBytesReader(httptest.NewRecorder(), r.Body, 50)
	err := wire.Body(r, &login{})
	var e *wire.Error
	require.ErrorAs(t, err, &e)
	assert.Equal(t, 413, e.Status)
}

type query struct {
	User  string   `path:"user"`
	Limit *int     `query:"limit"`
	Nodes bool     `query:"nodes"`
	State []string `query:"state"`
	Key   string   `header:"Idempotency-Key"`
	Text  string   `body:"text"`
}

func TestQueriesTakeTheLastValue(t *testing.T) {
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/x?limit=5&limit=0&nodes&state=A,B&state=C&other=1", strings.NewReader("a: 1\n"))
	r.SetPathValue("user", "alice")
	r.Header.Set("Idempotency-Key", "k")
	got := query{}
	require.NoError(t, wire.Decode(r, &got))
	zero := 0
	assert.Equal(t, query{"alice", &zero, true, []string{"A", "B", "C"}, "k", "a: 1\n"}, got)
	for _, bad := range []string{"/x?limit=abc", "/x?limit=", "/x?nodes=2x", "/x?limit=1.5", "/x?limit=%zz"} {
		require.Error(t, wire.Decode(httptest.NewRequestWithContext(t.Context(), http.MethodGet, bad, nil), &query{}), bad)
	}
}

func TestAnswersAreCompressedAndKnownAgain(t *testing.T) {
	long := map[string]string{"a": strings.Repeat("x", 5000)}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	r.Header.Set("Accept-Encoding", "br, gzip;q=0.5")
	w := httptest.NewRecorder()
	require.NoError(t, wire.JSON(w, r, 200, long))
	require.Equal(t, "gzip", w.Header().Get("Content-Encoding"))
	z, err := gzip.NewReader(w.Body)
	require.NoError(t, err)
	body, err := io.ReadAll(z)
	require.NoError(t, err)
	assert.Len(t, body, 5008)

	tag := w.Header().Get("ETag")
	r.Header.Set("If-None-Match", `"other", `+tag)
	w = httptest.NewRecorder()
	require.NoError(t, wire.JSON(w, r, 200, long))
	assert.Equal(t, 304, w.Code)
	assert.Empty(t, w.Body.String())

	for _, no := range []string{"", "gzip;q=0", "gzip;q=0.000", "identity"} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		r.Header.Set("Accept-Encoding", no)
		w := httptest.NewRecorder()
		require.NoError(t, wire.JSON(w, r, 200, long))
		assert.Empty(t, w.Header().Get("Content-Encoding"), no)
	}
}

func FuzzBody(f *testing.F) {
	for _, s := range []string{`{"username":"a"}`, `"{\"username\":1}"`, `username=a&expiration=3`, `{"expiration":"1e2"}`, `[[`, `{"data":"{}"}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, body string) {
		for _, out := range []any{&login{}, &patch{}, &map[string]any{}} {
			err := wire.Body(request("", body), out)
			if e, ok := errors.AsType[*wire.Error](err); err != nil && (!ok || e.Status != 400) {
				t.Errorf("%q: %v", body, err)
			}
		}
	})
}

func FuzzQuery(f *testing.F) {
	f.Add("limit=3&state=a,b&nodes")
	f.Fuzz(func(t *testing.T, raw string) {
		r := request("", "")
		r.URL.RawQuery = raw
		err := wire.Decode(r, &query{})
		if e, ok := errors.AsType[*wire.Error](err); err != nil && (!ok || e.Status != 400) {
			t.Errorf("%q: %v", raw, err)
		}
	})
}

func TestALongListIsTheSameHoweverItIsTaken(t *testing.T) {
	for what, n := range map[string]int{"short": 100, "long": 20_000} {
		rows := make([]string, n)
		for i := range rows {
			rows[i] = fmt.Sprint("row ", i)
		}
		plain, err := json.Marshal(rows)
		require.NoError(t, err)
		p, err := wire.Pack(rows)
		require.NoError(t, err)
		ask := func(method, key, value string) *httptest.ResponseRecorder {
			r := httptest.NewRequest(method, "/", nil)
			r.Header.Set(key, value)
			w := httptest.NewRecorder()
			p.JSON(w, r, http.StatusOK)
			return w
		}
		w := ask(http.MethodGet, "Accept-Encoding", "identity")
		assert.Equal(t, string(plain), w.Body.String(), what)
		assert.Equal(t, strconv.Itoa(len(plain)), w.Header().Get("Content-Length"))
		tag := w.Header().Get("ETag")
		bytes := httptest.NewRecorder()
		wire.Bytes(bytes, httptest.NewRequest(http.MethodGet, "/", nil), http.StatusOK, "application/json", plain)
		assert.Equal(t, bytes.Header().Get("ETag"), tag, "it is the tag of the body")
		w = ask(http.MethodGet, "If-None-Match", tag)
		assert.Equal(t, http.StatusNotModified, w.Code)
		assert.Empty(t, w.Body.String())
		w = ask(http.MethodHead, "Accept-Encoding", "gzip")
		assert.Empty(t, w.Body.String())
		w = ask(http.MethodGet, "Accept-Encoding", "gzip")
		if n > 100 {
			assert.Equal(t, "gzip", w.Header().Get("Content-Encoding"))
			assert.Less(t, p.Size(), len(plain)/2)
			z, err := gzip.NewReader(w.Body)
			require.NoError(t, err)
			all, err := io.ReadAll(z)
			require.NoError(t, err)
			assert.Equal(t, string(plain), string(all))
		}
	}
}
