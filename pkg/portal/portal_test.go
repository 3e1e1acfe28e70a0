package portal

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/server"
)

// browse requests an address of the portal, and returns the response.
func browse(t *testing.T, address string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	s := server.New(server.Options{Routes: Routes()})
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	route := s.Match(r)
	if route == nil {
		return nil
	}
	mux, w := http.NewServeMux(), httptest.NewRecorder()
	mux.HandleFunc(route.Path, func(w http.ResponseWriter, r *http.Request) {
		if err := route.Serve(&server.Call{Writer: w, Request: r, Route: route}); err != nil {
			http.Error(w, err.Error(), http.StatusNotFound)
		}
	})
	mux.ServeHTTP(w, r)
	return w
}

var linked = regexp.MustCompile(`(?:href|src)="([^"]+)"`)

func TestPagesLoadTheirFilesFromWhereTheyAre(t *testing.T) {
	for _, below := range []string{"", "/pai"} { // a proxy removes a path, and the browser doesn't know
		for _, page := range []string{"/", "/jobs", "/jobs/ann/train", "/submit", "/templates", "/templates/new", "/queue", "/machines", "/usage", "/profile", "/admin", "/admin/audit", "/admin/people/ann"} {
			w := browse(t, page)
			require.Equal(t, http.StatusOK, w.Code, page)
			assert.Equal(t, policy, w.Header().Get("Content-Security-Policy"))
			assert.NotContains(t, w.Body.String(), "<style")
			assert.NotRegexp(t, `<script>|<script [^>]*>[^<]`, w.Body.String(), "no script is inline")
			all := linked.FindAllStringSubmatch(w.Body.String(), -1)
			require.Len(t, all, 6)
			base := httptest.NewRequest(http.MethodGet, below+page, nil).URL
			for _, m := range all {
				at, err := base.Parse(m[1])
				require.NoError(t, err)
				file := browse(t, strings.TrimPrefix(at.Path, below))
				require.NotNil(t, file, at.Path)
				assert.Equal(t, http.StatusOK, file.Code, at.Path)
				assert.NotEmpty(t, file.Header().Get("Content-Type"), at.Path)
				assert.Equal(t, "public, max-age=31536000, immutable", file.Header().Get("Cache-Control"))
			}
		}
	}
}

func TestAPageIsSentAgainOnlyIfItChanged(t *testing.T) {
	w := browse(t, "/jobs")
	tag := w.Header().Get("ETag")
	require.NotEmpty(t, tag)
	assert.Equal(t, http.StatusNotModified, browse(t, "/jobs", "If-None-Match", tag).Code)
	assert.Equal(t, http.StatusOK, browse(t, "/jobs", "If-None-Match", `"other"`).Code)
}

var imported = regexp.MustCompile(`(?m)(?:^import |from )"\./([^"]+)";`)

// firstFiles returns the files that each page loads, which are the files of the document and the modules that these files import.
func firstFiles(s *site) map[string]bool {
	out := map[string]bool{}
	var add func(name string)
	add = func(name string) {
		if out[name] {
			return
		}
		out[name] = true
		for _, m := range imported.FindAllStringSubmatch(string(s.files[name].data), -1) {
			add(m[1])
		}
	}
	for _, m := range linked.FindAllStringSubmatch(frame, -1) {
		add(strings.TrimPrefix(m[1], "@"))
	}
	return out
}

// A browser must load less than 100 kB before the first page is usable.
func TestFilesAreCompressedAndSmall(t *testing.T) {
	s, total := load(), 0
	opened := map[string]int{"actions.js": 10_000, "admin.js": 50_000, "chart.js": 30_000, "code.js": 5_000, "editor.js": 150_000, "jobform.js": 20_000, "logs.js": 15_000, "parent.js": 3_000, "terminal.js": 100_000} // a page loads these when it opens one
	first := firstFiles(s)
	for name := range opened {
		assert.False(t, first[name], "the first page loads %s", name)
	}
	for name := range s.files {
		at := "/portal/" + s.version + "/" + name
		plain, zipped := browse(t, at), browse(t, at, "Accept-Encoding", "gzip")
		require.Equal(t, "gzip", zipped.Header().Get("Content-Encoding"), name)
		assert.Empty(t, plain.Header().Get("Content-Encoding"), name)
		switch most := opened[name]; {
		case first[name]:
			total += zipped.Body.Len()
		case most == 0:
			assert.Less(t, zipped.Body.Len(), 10_000, "%s, which pages share that are opened", name)
		default:
			assert.Less(t, zipped.Body.Len(), most, name)
		}
		z, err := gzip.NewReader(bytes.NewReader(zipped.Body.Bytes()))
		require.NoError(t, err)
		data, err := io.ReadAll(z)
		require.NoError(t, err)
		assert.Equal(t, plain.Body.String(), string(data), name)
		assert.Equal(t, http.StatusNotModified, browse(t, at, "If-None-Match", plain.Header().Get("ETag")).Code, name)
	}
	assert.Less(t, total, 100_000, "all files of the first page, compressed, in bytes")
	assert.Equal(t, http.StatusNotFound, browse(t, "/portal/0000000000000000/app.js").Code, "an earlier version")
	assert.Equal(t, http.StatusNotFound, browse(t, "/portal/"+s.version+"/none.js").Code)
}

// Texts from people and programs must never be interpreted as HTML.
func TestNoFileMakesMarkupOrLoadsFromElsewhere(t *testing.T) {
	for name, f := range load().files {
		if name != "library.js" { // it has the code for a property that the portal doesn't use
			assert.NotRegexp(t, `innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function`, string(f.data), name)
		}
		assert.NotRegexp(t, `(?:src|href|url|import|fetch)\s*[=(]\s*["'](?:https?:)?//`, string(f.data), name)
	}
}

func TestOldAddressesLeadToTheNewPages(t *testing.T) {
	for from, want := range map[string]string{
		"/index.html":                                                     "./",
		"/home.html?from=https://example.com":                             "./",
		"/job-detail.html?username=ann&jobName=train":                     "./jobs/ann/train",
		"/job-detail.html?username=ann":                                   "./jobs",
		"/job-event.html?userName=ann&jobName=train":                      "./jobs/ann/train?tab=events",
		"/task-attempt.html?username=ann&jobName=train&jobAttemptIndex=1": "./jobs/ann/train?tab=attempts",
		"/job-detail.html?username=%2F%2Fevil&jobName=%2F":                "./jobs/%2F%2Fevil/%2F",
		"/job-list.html?vcName=speech&status=Running":                     "./jobs?state=running&vc=speech",
		"/job-list.html":                                                  "./jobs",
		"/submit.html?op=resubmit&type=job&user=ann&jobName=train":        "./submit?clone=ann%2Ftrain",
		"/submit_v1.html":                                                 "./submit",
		"/user-profile.html":                                              "./profile",
		"/user-view.html":                                                 "./admin/people?else=home",
		"/batch-register.html":                                            "./admin/people?else=home",
		"/cluster-view/hardware/detail.html?instance=x":                   "./../../",
	} {
		w := browse(t, from)
		require.NotNil(t, w, from)
		assert.Equal(t, http.StatusFound, w.Code, from)
		assert.Equal(t, want, w.Header().Get("Location"), from)
	}
	assert.Nil(t, browse(t, "/view.html"), "the extension for VS Code takes the portal for OpenPAI's old one otherwise")
}

var (
	catalogue = regexp.MustCompile(`(?s)const (en|zh)\b[^{]*\{\n(.*?)\n\};`)
	textOf    = regexp.MustCompile(`(?m)^\s+"?([^":\n]+)"?:\s*"((?:[^"\\]|\\.)*)",?$`)
	lineOf    = regexp.MustCompile(`(?m)^\s*[^/\s].*$`)
	valueIn   = regexp.MustCompile(`\{\w+\}`)
)

// Each text has a translation with the same values. A missing value would be missing in the sentence, too.
func TestTranslationsHaveTheValuesOfTheirOriginals(t *testing.T) {
	files, err := filepath.Glob("web/src/text*.ts")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	values := func(text string) []string {
		all := valueIn.FindAllString(text, -1)
		slices.Sort(all)
		return slices.Compact(all)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		texts := map[string]map[string]string{}
		for _, c := range catalogue.FindAllStringSubmatch(string(data), -1) {
			texts[c[1]] = map[string]string{}
			for _, m := range textOf.FindAllStringSubmatch(c[2], -1) {
				texts[c[1]][m[1]] = m[2]
			}
			assert.Equal(t, len(lineOf.FindAllString(c[2], -1)), len(texts[c[1]]), "%s: each line of %s is one text", file, c[1]) //nolint:testifylint // Len would print all texts
		}
		require.Len(t, texts, 2, file)
		for key, text := range texts["en"] {
			translated, ok := texts["zh"][key]
			assert.True(t, ok, "%s: %q has no translation", file, key)
			assert.Equal(t, values(text), values(translated), "%s: %s", file, key)
		}
		assert.Equal(t, len(texts["en"]), len(texts["zh"]), file) //nolint:testifylint // as above
	}
}
