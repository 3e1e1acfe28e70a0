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
	// answerTime limits the time until etcd begins its response; historyTime limits the time until the job controller has copied its history.
	answerTime  = time.Minute
	historyTime = 2 * time.Hour
	// quorumTime limits the time until a member of etcd agrees with the others.
	quorumTime = 15 * time.Second
	// maxReason limits the length of an error response.
	maxReason = 4 << 10
)

// parts adds all parts, in the order of "paictl cluster backup". without is the reason if the history of jobs is known to be unavailable.
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

// keys returns the files of backup.KeyFiles as a tar archive.
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

// addEtcd streams the database of the machine's own etcd. If this etcd doesn't respond, or is separated from the other members, it uses another
// machine's etcd.
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

// isCurrent returns nil if a member of etcd has the current state: the request succeeds only with a majority of members. A snapshot has the data of
// one member, and could be outdated otherwise.
func isCurrent(ctx context.Context, client *http.Client, url string) error {
	ctx, cancel := context.WithTimeout(ctx, quorumTime)
	defer cancel()
	body, _, err := ask(ctx, client, http.MethodPost, url+"/v3/cluster/member/list", `{"linearizable":true}`, nil)
	if err != nil {
		return err
	}
	return body.Close()
}

// etcdClient returns a client with the certificate of the machine's own member, which the other members accept as well.
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

// addJobs adds the history of jobs. If that fails, the cluster is still saved, in a backup whose name shows that the
// history is missing.
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

// statusError is an error response.
type statusError struct {
	code int
	text string
}

// Error implements error.
func (e *statusError) Error() string { return e.text }

// ask sends one request. The caller closes the response; size is -1 if the server doesn't report it.
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
