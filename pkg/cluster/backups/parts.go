package backups

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/openpai/paictl/pkg/cluster/backup"
	"github.com/openpai/paictl/pkg/config/store"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/httpserver/access"
)

const (
	// answerTime is the timeout for the beginning of etcd's response. historyTime is the timeout for the job controller's copy of its history.
	answerTime  = time.Minute
	historyTime = 2 * time.Hour
	// quorumTime is the timeout for a linearizable read from a member of etcd.
	quorumTime = 15 * time.Second
	// maxReason is the maximum number of bytes that are read from an error response.
	maxReason = 4 << 10
)

// parts adds all parts to the archive, in the same order as "paictl cluster backup". The argument without is the reason why the job history is
// unavailable, or nil.
func (s *saver) parts(ctx context.Context, w *backup.Writer, pushed *store.Copy, masters []string, without error) error {
	for _, name := range slices.Sorted(maps.Keys(pushed.Files)) {
		text := pushed.Files[name]
		if err := w.Add(backup.FolderConfig+name, int64(len(text)), bytes.NewReader(text)); err != nil {
			return err
		}
	}
	keys, err := s.keys()
	if err != nil {
		return err
	}
	if err := backup.CheckAuthorities(keys); err != nil {
		return err
	}
	if err := w.Add(backup.PartKeys, int64(len(keys)), bytes.NewReader(keys)); err != nil {
		return err
	}
	if err := s.addEtcd(ctx, w, masters); err != nil {
		return fmt.Errorf("etcd's database: %w", err)
	}
	after, err := s.keys()
	if err != nil {
		return err
	}
	if err := backup.StillTheKeys(keys, after); err != nil {
		return err
	}
	if without != nil {
		w.LacksHistory(without)
		return nil
	}
	return s.addJobs(ctx, w)
}

func (s *saver) keys() ([]byte, error) {
	var out bytes.Buffer
	to := tar.NewWriter(&out)
	for _, name := range backup.KeyFiles() {
		text, err := os.ReadFile(filepath.Join(s.root, name))
		if errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("/%s is missing on this machine: without it no cluster can be restored", name)
		}
		if err != nil {
			return nil, fmt.Errorf("read the cluster's keys: %w", err)
		}
		err = to.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(text))})
		if err == nil {
			_, err = to.Write(text)
		}
		if err != nil {
			return nil, fmt.Errorf("read the cluster's keys: %w", err)
		}
	}
	if err := to.Close(); err != nil {
		return nil, fmt.Errorf("read the cluster's keys: %w", err)
	}
	return out.Bytes(), nil
}

// addEtcd adds a snapshot from the machine's own etcd. If this member doesn't respond or has no quorum, addEtcd uses the etcd of another machine.
func (s *saver) addEtcd(ctx context.Context, w *backup.Writer, masters []string) error {
	client, err := s.etcdClient()
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	var errs []error
	for _, host := range masters {
		url := "https://" + net.JoinHostPort(host, s.etcdPort)
		if err := isCurrent(ctx, client, url); err != nil {
			errs = append(errs, err)
			continue
		}
		if len(errs) > 0 {
			s.log.WarnContext(ctx, "etcd of another machine is saved", "machine", host, "why", errors.Join(errs...))
		}
		body, _, err := ask(ctx, client, http.MethodPost, url+"/v3/maintenance/snapshot", "{}", nil)
		if err != nil {
			return err
		}
		defer body.Close()
		db, err := backup.NewSnapshot(body)
		if err != nil {
			return err
		}
		return w.Add(backup.PartEtcd, db.Size(), db)
	}
	return errors.Join(errs...)
}

// isCurrent returns nil if a member of etcd can reach a majority of the members. Otherwise a snapshot of this member could be outdated.
func isCurrent(ctx context.Context, client *http.Client, url string) error {
	ctx, cancel := context.WithTimeout(ctx, quorumTime)
	defer cancel()
	body, _, err := ask(ctx, client, http.MethodPost, url+"/v3/cluster/member/list", `{"linearizable":true}`, nil)
	if err != nil {
		return err
	}
	return body.Close()
}

// etcdClient returns a client with the certificate of the machine's own etcd member. The other members accept the same certificate.
func (s *saver) etcdClient() (*http.Client, error) {
	pki := filepath.Join(s.root, "etc/kubernetes/pki/etcd")
	own, err := tls.LoadX509KeyPair(filepath.Join(pki, "server.crt"), filepath.Join(pki, "server.key"))
	if err != nil {
		return nil, err
	}
	authority, err := os.ReadFile(filepath.Join(pki, "ca.crt"))
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(authority) {
		return nil, fmt.Errorf("%s has no certificate", filepath.Join(pki, "ca.crt"))
	}
	return &http.Client{Transport: &http.Transport{
		DialContext:     (&net.Dialer{Timeout: quorumTime}).DialContext, // a machine that is off doesn't respond at all
		TLSClientConfig: &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{own}, MinVersion: tls.VersionTLS12}, ResponseHeaderTimeout: answerTime,
	}}, nil
}

// addJobs adds the job history. If it returns a *backup.NoHistoryError, the backup is repeated without the history, under another name.
func (s *saver) addJobs(ctx context.Context, w *backup.Writer) error {
	token, err := access.Read(s.token)
	if err != nil {
		return fmt.Errorf("read the token for the job controller: %w", err)
	}
	client := &http.Client{Transport: &http.Transport{DialContext: (&net.Dialer{Timeout: answerTime}).DialContext, ResponseHeaderTimeout: historyTime}}
	defer client.CloseIdleConnections()
	body, size, err := ask(ctx, client, http.MethodGet, s.jobs+"/v1/archive", "", http.Header{access.TokenHeader: {token}})
	if err == nil && size < 0 {
		err = errors.Join(errors.New("the job controller doesn't say how large its archive is"), body.Close())
	}
	said, answered := errors.AsType[*statusError](err)
	unknown, asked := errors.AsType[*net.DNSError](err)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case answered && said.code == http.StatusNotImplemented:
		w.LacksHistory(fmt.Errorf("%w: %w", backup.ErrHistoryElsewhere, err))
		return nil
	case asked && unknown.IsNotFound: // the cluster doesn't have the service
		return &backup.NoHistoryError{Err: fmt.Errorf("%w: %w", backup.ErrNoController, err)}
	case err != nil:
		return &backup.NoHistoryError{Err: err}
	}
	defer body.Close()
	return w.Add(backup.PartJobs, size, body)
}

type statusError struct {
	code int
	text string
}

// Error implements error.
func (e *statusError) Error() string { return e.text }

// ask sends a request. It returns the body of the response, which the caller must close, and its size, or -1 if the server doesn't report the size.
func ask(ctx context.Context, client *http.Client, method, url, body string, header http.Header) (answer io.ReadCloser, size int64, err error) {
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return nil, 0, err
	}
	for name, values := range header {
		req.Header[name] = values
	}
	res, err := client.Do(req)
	if err != nil {
		return nil, 0, hint.Wrap(err, "check that it runs: kubectl get pods -A")
	}
	if res.StatusCode == http.StatusOK {
		return res.Body, res.ContentLength, nil
	}
	defer res.Body.Close()
	said, err := io.ReadAll(io.LimitReader(res.Body, maxReason))
	if err != nil {
		return nil, 0, err
	}
	return nil, 0, &statusError{res.StatusCode, fmt.Sprintf("%s answers %s: %s", url, res.Status, strings.TrimSpace(string(said)))}
}
