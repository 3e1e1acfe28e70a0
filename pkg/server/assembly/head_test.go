package assembly_test

import (
	"archive/tar"
	"compress/gzip"
	"crypto/tls"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/job/jobtest"
)

func TestAHeadOfAFileDoesNotReadIt(t *testing.T) {
	ended := make(chan struct{})
	r := hostileTask(t, func(_ string, p *jobtest.Process) *metav1.Status {
		defer close(ended)
		z := gzip.NewWriter(p.Stdout)
		files := tar.NewWriter(z)
		_ = files.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "a", Size: 1 << 40, Mode: 0o600})
		for block := make([]byte, 1<<20); ; {
			if _, err := files.Write(block); err != nil || z.Flush() != nil {
				return jobtest.Exited(1)
			}
		}
	})
	old := r.Client.Transport.(*http.Transport).Clone()
	old.ForceAttemptHTTP2, old.TLSNextProto = false, map[string]func(string, *tls.Conn) http.RoundTripper{}
	old.TLSClientConfig.NextProtos = nil
	client := &http.Client{Transport: old}
	req, err := http.NewRequestWithContext(t.Context(), "HEAD", r.URL+"/api/v3/jobs/ann/files/tasks/Worker_1/0/files/content?path=a", nil)
	require.NoError(t, err)
	req.Header.Set("Authorization", "Bearer "+r.tokens["ann"])
	resp, err := client.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	assert.Equal(t, 200, resp.StatusCode)
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		t.Error("the file is still read, and nothing of it is sent")
	}
}
