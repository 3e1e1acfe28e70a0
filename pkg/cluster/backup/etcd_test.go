package backup_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/cluster/backup"
	"github.com/openpai/paictl/pkg/cluster/bundle"
	"github.com/openpai/paictl/pkg/cluster/bundle/bundletest"
)

func etcd(t *testing.T, data string) (address string) {
	t.Helper()
	_, program := bundletest.Need(t, bundle.KindTool, "etcd")
	var urls []string
	for range 2 {
		l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
		require.NoError(t, err)
		urls = append(urls, "http://"+l.Addr().String())
		require.NoError(t, l.Close())
	}
	said := &bytes.Buffer{}
	cmd := exec.Command(program, "--name=one", "--data-dir="+data, "--log-level=error", "--listen-client-urls="+urls[0], "--advertise-client-urls="+urls[0],
		"--listen-peer-urls="+urls[1], "--initial-advertise-peer-urls="+urls[1], "--initial-cluster=one="+urls[1])
	cmd.Stderr = said
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	require.Eventually(t, func() bool {
		resp, err := http.Get(urls[0] + "/health")
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	}, time.Minute, 50*time.Millisecond, "%s", said)
	return urls[0]
}

func post(t *testing.T, url, body string) io.ReadCloser {
	t.Helper()
	resp, err := http.Post(url, "application/json", strings.NewReader(body))
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, resp.StatusCode)
	return resp.Body
}

func TestTheSnapshotOfARealEtcdIsItsDatabase(t *testing.T) {
	data := t.TempDir()
	url := etcd(t, data)
	value := strings.Repeat("dmFsdWVz", 200)
	for i := range 300 {
		require.NoError(t, post(t, url+"/v3/kv/put", fmt.Sprintf(`{"key":"a2V5%04d","value":%q}`, i, value)).Close())
	}
	in := post(t, url+"/v3/maintenance/snapshot", "{}")
	defer in.Close()
	s, err := backup.NewSnapshot(in)
	require.NoError(t, err)
	db, err := io.ReadAll(s)
	require.NoError(t, err)
	assert.Len(t, db, int(s.Size()))
	assert.Greater(t, len(db), 300*1000)
	file, err := os.Stat(filepath.Join(data, "member", "snap", "db"))
	require.NoError(t, err)
	assert.LessOrEqual(t, int64(len(db)), file.Size()+sha256.Size)
	assert.GreaterOrEqual(t, bytes.Count(db, []byte("key\xd3")), 300, "the keys that were put begin so")
}
