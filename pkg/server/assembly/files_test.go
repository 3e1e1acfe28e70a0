package assembly_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/job/jobtest"
	"github.com/openpai/paictl/pkg/server/servertest"
	"github.com/openpai/paictl/pkg/server/v3/api"
)

// file sends a request for a file of ann's task, and returns the status, the headers and the body.
func (r *rooms) file(t *testing.T, method, who, rest, path string, body io.Reader) (*http.Response, string, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, r.URL+"/api/v3/jobs/ann/files/tasks/Worker_1/0/files"+rest+"?"+url.Values{"path": {path}}.Encode(), body)
	require.NoError(t, err)
	req.Header.Set("Authorization", "Bearer "+r.tokens[who])
	resp, err := r.Client.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return resp, string(text), err
}

func TestFilesOfATask(t *testing.T) {
	r := newRooms(t)
	require.Equal(t, 202, r.Submit(r.tokens["ann"], "files", "speech").Status)
	r.runs(t, "ann", "files")
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "out", "ckpt"), 0o700))
	large := bytes.Repeat([]byte("0123456789abcdef"), 1<<18) // 4 MiB
	require.NoError(t, os.WriteFile(filepath.Join(dir, "out", "modèle 1.pt"), large, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "out", "ckpt", "a"), []byte("A"), 0o600))
	r.kubelet.Exec = servertest.RunRuntime(t, dir)

	t.Run("a folder is listed", func(t *testing.T) {
		resp, text, err := r.file(t, "GET", "ann", "", "out", nil)
		require.NoError(t, err)
		require.Equal(t, 200, resp.StatusCode, text)
		var list api.Files
		require.NoError(t, json.Unmarshal([]byte(text), &list))
		assert.Equal(t, "folder", list.Kind)
		assert.Equal(t, filepath.Join(dir, "out"), list.Path)
		require.Len(t, list.Entries, 2)
		assert.Equal(t, "modèle 1.pt", list.Entries[1].Name)
		assert.Equal(t, int64(len(large)), list.Entries[1].Size)
	})
	t.Run("without a path, it is the folder of the program", func(t *testing.T) {
		_, text, err := r.file(t, "GET", "ann", "", "", nil)
		require.NoError(t, err)
		assert.Contains(t, text, `"name":"out"`)
	})
	t.Run("a file is read", func(t *testing.T) {
		resp, text, err := r.file(t, "GET", "ann", "/content", "out/modèle 1.pt", nil)
		require.NoError(t, err)
		require.Equal(t, 200, resp.StatusCode)
		assert.Equal(t, string(large), text)
		assert.Equal(t, int64(len(large)), resp.ContentLength)
		assert.Equal(t, "attachment; filename*=utf-8''mod%C3%A8le%201.pt", resp.Header.Get("Content-Disposition"))
		assert.Equal(t, "application/octet-stream", resp.Header.Get("Content-Type"))
		assert.Equal(t, "nosniff", resp.Header.Get("X-Content-Type-Options"))
	})
	t.Run("a folder is read as an archive", func(t *testing.T) {
		resp, text, err := r.file(t, "GET", "ann", "/content", "out/ckpt", nil)
		require.NoError(t, err)
		assert.Equal(t, "attachment; filename=ckpt.tar.gz", resp.Header.Get("Content-Disposition"))
		z, err := gzip.NewReader(strings.NewReader(text))
		require.NoError(t, err)
		files := tar.NewReader(z)
		var names []string
		for {
			h, err := files.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err)
			names = append(names, h.Name)
		}
		assert.Equal(t, []string{"ckpt/", "ckpt/a"}, names)
	})
	t.Run("a file is written", func(t *testing.T) {
		resp, text, err := r.file(t, "PUT", "ann", "/content", "in/conf.yaml", bytes.NewReader(large))
		require.NoError(t, err)
		require.Equal(t, 201, resp.StatusCode, text)
		got, err := os.ReadFile(filepath.Join(dir, "in", "conf.yaml"))
		require.NoError(t, err)
		assert.True(t, bytes.Equal(large, got))
	})
	t.Run("mistakes", func(t *testing.T) {
		require.NoError(t, os.Chmod(filepath.Join(dir, "out", "ckpt", "a"), 0o600))
		for _, c := range []struct {
			method, who, rest, path string
			body                    io.Reader
			status                  int
			says                    string
		}{
			{"GET", "ann", "", "nowhere", nil, 404, "NoFileError"},
			{"GET", "ann", "/content", "nowhere", nil, 404, "NoFileError"},
			{"GET", "ann", "/content", "", nil, 400, "path"},
			{"GET", "ann", "/content", "out/ckpt/a/b", nil, 400, "not a directory"},
			{"GET", "ann", "/content", "/dev/null", nil, 400, "neither a file nor a folder"},
			{"GET", "ann", "", "a\x00b", nil, 400, "path"},
			{"GET", "ann", "", strings.Repeat("a", 5000), nil, 400, "path"},
			{"PUT", "ann", "/content", "out/", strings.NewReader("x"), 400, "name a file"},
			{"PUT", "ann", "/content", "out/..", strings.NewReader("x"), 400, "name a file"},
			{"PUT", "ann", "/content", "out", strings.NewReader("x"), 400, "the task says"},
			{"PUT", "ann", "/content", "x", io.MultiReader(strings.NewReader("x")), 400, "Content-Length"},
			{"GET", "vic", "", "out", nil, 404, "NoJobError"},
			{"GET", "vic", "/content", "out/ckpt/a", nil, 404, "NoJobError"},
			{"PUT", "vic", "/content", "x", strings.NewReader("x"), 404, "NoJobError"},
			{"PUT", "abe", "/content", "x", strings.NewReader("x"), 403, "ForbiddenUserError"},
		} {
			resp, text, err := r.file(t, c.method, c.who, c.rest, c.path, c.body)
			require.NoError(t, err)
			assert.Equal(t, c.status, resp.StatusCode, "%v: %s", c, text)
			assert.Contains(t, text, c.says)
			assert.Empty(t, resp.Header.Get("Content-Disposition"))
		}
	})
	t.Run("a hostile task", func(t *testing.T) {
		archive := func(name string, size int64, body string) []byte {
			var b bytes.Buffer
			z := gzip.NewWriter(&b)
			files := tar.NewWriter(z)
			_ = files.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o600})
			_, _ = files.Write([]byte(body))
			_ = files.Flush()
			_ = z.Close()
			return b.Bytes()
		}
		answers := map[string][]byte{"cp-kind": []byte("file\n")}
		r.kubelet.Exec = func(p *jobtest.Process) *metav1.Status {
			_, _ = p.Stdout.Write(answers[servertest.RuntimeCommand(p)[0]])
			return jobtest.Exited(0)
		}
		for name, answer := range map[string][]byte{"another file": archive("../x", 1, "x"), "no archive": []byte("<html>"), "nothing": nil} {
			answers["cp-out"] = answer
			resp, text, err := r.file(t, "GET", "ann", "/content", "a", nil)
			require.NoError(t, err, name)
			assert.GreaterOrEqual(t, resp.StatusCode, 400, "%s: %s", name, text)
			assert.Empty(t, resp.Header.Get("Content-Disposition"), name)
		}
		answers["cp-out"] = archive("a", 100, "only a part")
		resp, text, err := r.file(t, "GET", "ann", "/content", "a", nil)
		require.NoError(t, err)
		assert.GreaterOrEqual(t, resp.StatusCode, 400, text)
		answers["cp-out"] = archive("a", 1<<20, string(large[:1<<18]))
		_, _, err = r.file(t, "GET", "ann", "/content", "a", nil)
		require.Error(t, err, "a part must not look like the whole")
		for name, answer := range map[string]string{"no JSON": "<html>", "endless": strings.Repeat(" ", 5<<20)} {
			answers["cp-list"] = []byte(answer)
			resp, _, err := r.file(t, "GET", "ann", "", "a", nil)
			require.NoError(t, err, name)
			assert.Equal(t, 502, resp.StatusCode, name)
		}
		r.kubelet.Exec = func(*jobtest.Process) *metav1.Status { return jobtest.Exited(1) }
		_, text, err = r.file(t, "GET", "ann", "", "a", nil)
		require.NoError(t, err)
		assert.Contains(t, text, "exit code 1")
		r.kubelet.Exec = func(p *jobtest.Process) *metav1.Status {
			_, _ = p.Stdout.Write(answers[servertest.RuntimeCommand(p)[0]])
			return jobtest.Exited(0)
		}
		answers["cp-kind"] = bytes.Repeat([]byte("x"), 1000)
		resp, _, err = r.file(t, "GET", "ann", "/content", "a", nil)
		require.NoError(t, err)
		assert.Equal(t, 502, resp.StatusCode)
	})
	said := r.Printed.String()
	assert.True(t, slices.ContainsFunc(strings.Split(said, "\n"), func(l string) bool {
		return strings.Contains(l, `"verb":"enter"`) && strings.Contains(l, "conf.yaml")
	}), "the audit says which files were written")
}
