package assembly_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/job/jobtest"
	"github.com/openpai/paictl/pkg/server/servertest"
)

// patience exceeds the time of every response in these tests.
const patience = 20 * time.Second

// hostileTask returns a house with a running task of ann. The runtime of the task reports each path as a file. answer simulates the runtime's other
// commands.
func hostileTask(t *testing.T, answer func(what string, p *jobtest.Process) *metav1.Status) *rooms {
	t.Helper()
	r := newRooms(t)
	require.Equal(t, 202, r.Submit(r.tokens["ann"], "files", "speech").Status)
	r.runs(t, "ann", "files")
	r.kubelet.Exec = func(p *jobtest.Process) *metav1.Status {
		what := servertest.RuntimeCommand(p)[0]
		if what == "cp-kind" {
			_, _ = io.WriteString(p.Stdout, "file\n")
			return jobtest.Exited(0)
		}
		return answer(what, p)
	}
	return r
}

// forever writes a text until a write fails.
func forever(p *jobtest.Process, text []byte) *metav1.Status {
	for {
		if _, err := p.Stdout.Write(text); err != nil {
			return jobtest.Exited(1)
		}
	}
}

// soon sends a request for the file a of ann's task, and expects a response within patience.
func (r *rooms) soon(t *testing.T, method, rest string, length int64, body io.Reader) (status int, h http.Header, text string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, r.URL+"/api/v3/jobs/ann/files/tasks/Worker_1/0/files"+rest+"?path=a", body)
	require.NoError(t, err)
	req.Header.Set("Authorization", "Bearer "+r.tokens["ann"])
	if body != nil {
		req.ContentLength = length
	}
	resp, err := r.Client.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	return resp.StatusCode, resp.Header, string(got), err
}

// packed returns the beginning of an archive with the file a.
func packed(t *testing.T, size int64, body string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	files := tar.NewWriter(z)
	require.NoError(t, files.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "a", Size: size, Mode: 0o600}))
	_, err := io.WriteString(files, body)
	require.NoError(t, err)
	require.NoError(t, z.Close())
	return b.Bytes()
}

func TestAnAnswerOfATaskThatNeverEndsEnds(t *testing.T) {
	t.Run("after the file", func(t *testing.T) {
		ended := make(chan struct{})
		r := hostileTask(t, func(_ string, p *jobtest.Process) *metav1.Status {
			defer close(ended)
			_, _ = p.Stdout.Write(packed(t, 1, "x"))
			return forever(p, make([]byte, 1<<10))
		})
		_, _, _, _ = r.soon(t, "GET", "/content", 0, nil)
		select {
		case <-ended:
		case <-time.After(patience):
			t.Error("the task's output is still read, and nobody gets it")
		}
	})
	t.Run("before the file", func(t *testing.T) {
		var header bytes.Buffer
		files := tar.NewWriter(&header)
		require.NoError(t, files.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "a", Format: tar.FormatPAX, PAXRecords: map[string]string{"A.b": strings.Repeat("x", 100<<10)}}))
		records := header.Bytes()[:header.Len()-512] // without the file's own header
		r := hostileTask(t, func(_ string, p *jobtest.Process) *metav1.Status {
			z := gzip.NewWriter(p.Stdout)
			for {
				if _, err := z.Write(records); err != nil {
					return jobtest.Exited(1)
				}
			}
		})
		status, _, text, err := r.soon(t, "GET", "/content", 0, nil)
		require.NoError(t, err)
		assert.GreaterOrEqual(t, status, 400, text)
	})
}

func TestAListingOfMoreEntriesThanTheRuntimeListsIsRefused(t *testing.T) {
	answer := `{"path":"/a","name":"a","kind":"folder","entries":[{}` + strings.Repeat(",{}", 1<<20) + "]}"
	r := hostileTask(t, func(_ string, p *jobtest.Process) *metav1.Status {
		_, _ = io.WriteString(p.Stdout, answer)
		return jobtest.Exited(0)
	})
	status, _, text, err := r.soon(t, "GET", "", 0, nil)
	require.NoError(t, err)
	assert.Equal(t, 502, status, "%d bytes", len(text))
}

func TestAnUploadEndsWithItsTask(t *testing.T) {
	for name, code := range map[string]int{"which fails": 1, "which says that it has the file": 0} {
		t.Run(name, func(t *testing.T) {
			r := hostileTask(t, func(string, *jobtest.Process) *metav1.Status { return jobtest.Exited(code) })
			stalled, end := io.Pipe()
			defer end.Close()
			go func() { _, _ = io.WriteString(end, "the beginning") }()
			status, _, text, err := r.soon(t, "PUT", "/content", 1<<30, stalled)
			require.NoError(t, err)
			assert.GreaterOrEqual(t, status, 400, text)
		})
	}
}

func TestTheAuditNamesAFileByItsWholePath(t *testing.T) {
	r := hostileTask(t, func(string, *jobtest.Process) *metav1.Status { return jobtest.Exited(1) })
	path := strings.Repeat("./", 100) + "secret.key"
	_, _, err := r.file(t, "GET", "ann", "/content", path, nil)
	require.NoError(t, err)
	assert.Contains(t, r.Printed.String(), path)
}

func TestAFolderOfLinksWithLongTargetsIsListed(t *testing.T) {
	dir := t.TempDir()
	target := strings.Repeat("x/", 2000)
	for i := range 2000 {
		require.NoError(t, os.Symlink(target, filepath.Join(dir, strings.Repeat("n", i%200)+time.Duration(i).String())))
	}
	r := newRooms(t)
	require.Equal(t, 202, r.Submit(r.tokens["ann"], "files", "speech").Status)
	r.runs(t, "ann", "files")
	r.kubelet.Exec = servertest.RunRuntime(t, dir)
	resp, text, err := r.file(t, "GET", "ann", "", ".", nil)
	require.NoError(t, err)
	assert.Equal(t, 200, resp.StatusCode, text[:min(300, len(text))])
	assert.Contains(t, text[max(0, len(text)-200):], `"more":true`)
}
