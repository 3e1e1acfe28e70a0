package kubetest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/openpai/paictl/pkg/cluster/sandbox"
)

// etcd is a client of etcd's JSON gateway. It has only the few calls that restore etcd's data.
type etcd struct {
	address string
	client  *http.Client
}

// entry is a key in etcd. Its revision changes with each write.
type entry struct {
	Key      []byte `json:"key"`
	Value    []byte `json:"value"`
	Revision string `json:"mod_revision"`
}

func etcdOf(s *sandbox.Sandbox) (etcd, error) {
	address, client, err := s.Etcd()
	return etcd{address, client}, err
}

// list returns all keys in order. It returns their values only if values is set.
func (e etcd) list(ctx context.Context, values bool) ([]entry, error) {
	var out struct {
		Kvs []entry `json:"kvs"`
	}
	// A range from the zero byte to the zero byte contains all keys.
	err := e.post(ctx, "range", map[string]any{"key": []byte{0}, "range_end": []byte{0}, "keys_only": !values}, &out)
	return out.Kvs, err
}

// maxOps is the maximum number of operations in one transaction of etcd.
const maxOps = 128

// write deletes the keys in remove and stores the entries in put.
func (e etcd) write(ctx context.Context, remove [][]byte, put []entry) error {
	var ops []any
	for _, key := range remove {
		ops = append(ops, map[string]any{"request_delete_range": map[string]any{"key": key}})
	}
	for _, kv := range put {
		ops = append(ops, map[string]any{"request_put": map[string]any{"key": kv.Key, "value": kv.Value}})
	}
	for some := range slices.Chunk(ops, maxOps) {
		if err := e.post(ctx, "txn", map[string]any{"success": some}, nil); err != nil {
			return err
		}
	}
	return nil
}

func (e etcd) post(ctx context.Context, call string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.address+"/v3/kv/"+call, bytes.NewReader(body))
	if err != nil {
		return err
	}
	resp, err := e.client.Do(req)
	if err != nil {
		return fmt.Errorf("etcd: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		said, _ := io.ReadAll(io.LimitReader(resp.Body, 1000))
		return fmt.Errorf("etcd: %s of %s: %s", resp.Status, call, said)
	}
	if out == nil {
		return nil
	}
	return json.NewDecoder(resp.Body).Decode(out)
}

// own reports whether a key belongs to the API server itself, which writes such keys at any time: its leases, its locks and its compactions.
func own(key []byte) bool {
	k := string(key)
	return k == "compact_rev_key" || strings.HasPrefix(k, "/registry/leases/kube-system/") || strings.HasPrefix(k, "/registry/masterleases/") ||
		// The API server itself creates and removes these keys, for each group of custom resources.
		strings.HasPrefix(k, "/registry/apiregistration.k8s.io/")
}

// lag is how long the API server may still apply a deleted policy, because it reads the policies once a second.
const lag = 2 * time.Second

// reset restores the keys and values of baseline, and returns the entries with their new revisions.
func (e etcd) reset(ctx context.Context, baseline []entry) ([]entry, error) {
	before := map[string]entry{}
	for _, kv := range baseline {
		before[string(kv.Key)] = kv
	}
	now, err := e.list(ctx, false)
	if err != nil {
		return nil, err
	}
	var remove [][]byte
	var put []entry
	admission := false
	for _, kv := range now {
		old, known := before[string(kv.Key)]
		delete(before, string(kv.Key))
		switch {
		case own(kv.Key):
			continue
		case !known:
			remove = append(remove, kv.Key)
		case kv.Revision != old.Revision:
			put = append(put, old)
		default:
			continue
		}
		admission = admission || strings.Contains(string(kv.Key), "admissionpolic") || strings.Contains(string(kv.Key), "webhookconfiguration")
	}
	for _, old := range before {
		if !own(old.Key) {
			put = append(put, old)
		}
	}
	if err := e.write(ctx, remove, put); err != nil {
		return nil, err
	}
	if admission {
		time.Sleep(lag)
	}
	revisions := map[string]string{}
	if now, err = e.list(ctx, false); err != nil {
		return nil, err
	}
	for _, kv := range now {
		revisions[string(kv.Key)] = kv.Revision
	}
	out := slices.Clone(baseline)
	for i := range out {
		out[i].Revision = revisions[string(out[i].Key)]
	}
	return out, nil
}
