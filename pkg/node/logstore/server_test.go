package logstore

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/httpserver/access"
	"github.com/openpai/paictl/pkg/node/logstore/logapi"
	"github.com/openpai/paictl/pkg/node/meter"
)

func ask(t *testing.T, l *lab, path, token string) *httptest.ResponseRecorder {
	t.Helper()
	file := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(file, []byte("sesame\n"), 0o600))
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
	logapi.Sign(r, token, time.Now())
	w := httptest.NewRecorder()
	NewServer(l.store, meter.New(l.groups), file, "").Handler().ServeHTTP(w, r)
	return w
}

func TestALogIsServedToWhoKnowsTheToken(t *testing.T) {
	l := newLab(t)
	l.print(2)
	here := logapi.Path(uid, "app")
	w := ask(t, l, here, "sesame")
	require.Equal(t, http.StatusOK, w.Code)
	assert.Equal(t, "2026-03-01T12:00:00.001Z line 1\n2026-03-01T12:00:00.002Z line 2\n", w.Body.String())
	assert.Equal(t, "0", w.Header().Get(logapi.HeaderStart))
	assert.Equal(t, w.Header().Get(logapi.HeaderEnd), w.Header().Get(logapi.HeaderNext))
	assert.Equal(t, "1073741824", w.Header().Get(logapi.HeaderLimit))
	assert.Equal(t, "nosniff", w.Header().Get("X-Content-Type-Options"))
	assert.Equal(t, "line 2\n", ask(t, l, here+"?times=false&tail=1", "sesame").Body.String())
	for path, want := range map[string]int{
		here + "?offset=-1":                   http.StatusBadRequest,
		here + "?tial=1":                      http.StatusBadRequest,
		here + "?match=(":                     http.StatusBadRequest,
		here + "?stream=stdin":                http.StatusBadRequest,
		logapi.Path(uid, "other"):             http.StatusNotFound,
		logapi.Path(uid, "x%2f..%2f..%2fetc"): http.StatusNotFound,
	} {
		assert.Equal(t, want, ask(t, l, path, "sesame").Code, path)
	}
	for _, token := range []string{"", "sesam", "sesame2"} {
		w := ask(t, l, here, token)
		assert.Equal(t, http.StatusForbidden, w.Code)
		assert.NotContains(t, w.Body.String(), "line")
	}
	seen := map[string]string{} // by a pod that has the address of an agent now
	note := httptest.NewRequestWithContext(t.Context(), http.MethodGet, here, nil)
	logapi.Sign(note, "sesame", time.Now())
	for name := range note.Header {
		seen[name] = note.Header.Get(name)
		assert.NotContains(t, seen[name], "sesame", "the token isn't sent")
	}
	for path, change := range map[string]func(*http.Request){
		logapi.UsePath:   func(*http.Request) {},
		here + "?tail=1": func(*http.Request) {},
		here:             func(r *http.Request) { logapi.Sign(r, "sesame", time.Now().Add(-6*time.Minute)) },
		here + "?tail=2": func(r *http.Request) { logapi.Sign(r, "sesame", time.Now().Add(6*time.Minute)) },
		here + "?tail=3": func(r *http.Request) { r.Header.Set(logapi.HeaderSignature, ":") },
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
		for name, value := range seen {
			r.Header.Set(name, value)
		}
		change(r)
		file := filepath.Join(t.TempDir(), "token")
		require.NoError(t, os.WriteFile(file, []byte("sesame"), 0o600))
		w := httptest.NewRecorder()
		NewServer(l.store, nil, file, "").Handler().ServeHTTP(w, r)
		assert.Equal(t, http.StatusForbidden, w.Code, "a request that was seen opens nothing else: %s", path)
	}
	assert.Equal(t, http.StatusForbidden, func() int {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, here, nil)
		w := httptest.NewRecorder()
		NewServer(l.store, nil, filepath.Join(t.TempDir(), "absent"), "").Handler().ServeHTTP(w, r)
		return w.Code
	}(), "without a token there is no way in")
	assert.Contains(t, ask(t, l, "/metrics", "").Body.String(), "pai_logs_kept 1\n")
}

func TestAQuestionWaitsForLines(t *testing.T) {
	l := newLab(t)
	l.print(1)
	end := ask(t, l, logapi.Path(uid, "app"), "sesame").Header().Get(logapi.HeaderEnd)
	printed := make(chan struct{})
	go func() {
		defer close(printed)
		f, err := os.OpenFile(l.current(), os.O_APPEND|os.O_WRONLY, 0)
		if err == nil {
			_, _ = f.WriteString("2026-03-01T12:00:01Z stdout F late\n")
			_ = f.Close()
		}
	}()
	assert.Equal(t, "late\n", ask(t, l, logapi.Path(uid, "app")+"?times=false&wait=30s&offset="+end, "sesame").Body.String())
	<-printed
	assert.Empty(t, ask(t, l, logapi.Path(uid, "app")+"?wait=1ms&tail=0", "sesame").Body.String())
}

func TestAPodOfAnotherMakerHasOneContainerOfAnyName(t *testing.T) {
	l := newLab(t)
	require.NoError(t, os.Rename(l.container(), filepath.Join(l.pods, podDir, "tensorflow")))
	require.NoError(t, os.WriteFile(filepath.Join(l.pods, podDir, "tensorflow", "0.log"), []byte("2026-03-01T12:00:01Z stdout F it\n"), 0o600))
	assert.True(t, strings.HasSuffix(ask(t, l, logapi.Path(uid, "app"), "sesame").Body.String(), " it\n"))
}

func TestMetricsWantTheirPassword(t *testing.T) {
	l := newLab(t)
	file := filepath.Join(t.TempDir(), "password")
	require.NoError(t, os.WriteFile(file, []byte("s3cret"), 0o600))
	for password, want := range map[string]int{"": http.StatusUnauthorized, "wrong": http.StatusUnauthorized, "s3cret": http.StatusOK} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil)
		if password != "" {
			r.SetBasicAuth(access.User, password)
		}
		w := httptest.NewRecorder()
		NewServer(l.store, nil, "", file).Handler().ServeHTTP(w, r)
		assert.Equal(t, want, w.Code, password)
	}
}

// The alert rules depend on these names.
func TestTheNamesOfMetricsAreAsRecordedForTheAlerts(t *testing.T) {
	recorded, err := os.ReadFile("../../../templates/testdata/metrics/log-manager.txt")
	require.NoError(t, err)
	var told, want []string
	for line := range strings.Lines(ask(t, newLab(t), "/metrics", "").Body.String()) {
		if kind, ok := strings.CutPrefix(line, "# TYPE "); ok {
			told = append(told, strings.TrimSpace(kind))
		}
	}
	for line := range strings.Lines(string(recorded)) {
		if !strings.HasPrefix(line, "#") {
			want = append(want, strings.TrimSpace(line))
		}
	}
	assert.ElementsMatch(t, want, told)
}
