package backup

import (
	"archive/tar"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"

	"github.com/openpai/paictl/pkg/cluster/backup"
	"github.com/openpai/paictl/pkg/cluster/bundle"
	"github.com/openpai/paictl/pkg/cluster/sandbox"
	v1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/kube"
)

// Rehearsal is the result of a rehearsal, which starts etcd and the API server with the data of a backup.
type Rehearsal struct {
	*backup.Manifest `json:",inline"`
	// Objects holds the number of objects for the most important kinds.
	Objects []KindCount `json:"objects"`
}

// KindCount is the number of objects of one kind.
type KindCount struct {
	Kind  string `json:"kind"`
	Count int    `json:"count"`
}

// counted returns the kinds whose objects a rehearsal counts.
func counted() []schema.GroupVersionResource {
	core := func(r string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Version: "v1", Resource: r}
	}
	return []schema.GroupVersionResource{
		core("namespaces"), core("nodes"), core("pods"), core("services"), core("configmaps"), core("secrets"), core("persistentvolumes"),
		{Group: "apps", Version: "v1", Resource: "deployments"}, {Group: "apps", Version: "v1", Resource: "statefulsets"}, {Group: "apps", Version: "v1", Resource: "daemonsets"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"},
		{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"},
		v1.Resource,
	}
}

// rehearse starts etcd and the API server with the data of a backup, as a restore would, and counts the objects. The programs listen only on the
// loopback interface. rehearse removes all files that it wrote. It also returns the size of the backup in bytes.
func rehearse(ctx context.Context, from archive, bundleDir string) (out *Rehearsal, size int64, err error) {
	f := from.Factory
	dir, err := os.MkdirTemp("", "paictl-rehearsal-")
	if err != nil {
		return nil, 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	m, size, err := from.unpack(ctx, filepath.Join(dir, "parts"))
	if err != nil {
		return nil, 0, err
	}
	if err := checkKeys(filepath.Join(dir, "parts", backup.PartKeys)); err != nil {
		return nil, 0, fmt.Errorf("%s: %w", from.File, err)
	}
	snapshot := &sandbox.Snapshot{File: filepath.Join(dir, "parts", backup.PartEtcd), Encryption: filepath.Join(dir, "encryption.yaml")}
	if err := encryption(filepath.Join(dir, "parts", backup.PartKeys), snapshot.Encryption); err != nil {
		return nil, 0, fmt.Errorf("%s: %w", from.File, err)
	}
	if bundleDir == "" {
		settings, err := f.Settings()
		if err != nil {
			return nil, 0, err
		}
		bundleDir = cmp.Or(settings.GetString("bundle"), bundle.DefaultDir)
	}
	// The programs end when the thread that started them ends.
	ready, done := make(chan error), make(chan struct{})
	defer close(done)
	var s *sandbox.Sandbox
	go func() {
		runtime.LockOSThread()
		var err error
		s, err = sandbox.ServeAPI(ctx, sandbox.Options{Dir: filepath.Join(dir, "api"), Name: "rehearse", Bundle: bundleDir, Snapshot: snapshot,
			Progress: func(line string) { fmt.Fprintln(f.IO.Err, line) }})
		ready <- err
		<-done
	}()
	err = <-ready
	if s != nil {
		defer func() { err = errors.Join(err, s.Down(context.WithoutCancel(ctx))) }()
	}
	if err != nil {
		return nil, 0, fmt.Errorf("serve the backup's database: %w", err)
	}
	api, err := kube.Open(kube.Options{Kubeconfig: s.Kubeconfig()})
	if err != nil {
		return nil, 0, err
	}
	objects, err := count(ctx, api)
	if err != nil {
		return nil, 0, fmt.Errorf("read the backup's objects: %w", err)
	}
	return &Rehearsal{Manifest: m, Objects: objects}, size, nil
}

// encryption extracts the key for the encryption of Secrets from the keys in a backup.
func encryption(keys, to string) error {
	in, err := os.Open(keys)
	if err != nil {
		return err
	}
	defer in.Close()
	archive := tar.NewReader(in)
	for {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return errors.New("the keys in the backup don't include the key for secrets at rest")
		}
		if err != nil {
			return fmt.Errorf("the keys in the backup: %w", err)
		}
		if h.Name != "etc/paictl/encryption.yaml" {
			continue
		}
		b, err := io.ReadAll(io.LimitReader(archive, 1<<20))
		if err != nil {
			return fmt.Errorf("the keys in the backup: %w", err)
		}
		return os.WriteFile(to, b, 0o600)
	}
}

// count lists all objects of the important kinds. For that, the API server has to decrypt and decode them.
func count(ctx context.Context, api *kube.Cluster) ([]KindCount, error) {
	client, err := metadata.NewForConfig(api.Config)
	if err != nil {
		return nil, err
	}
	var out []KindCount
	for _, kind := range counted() {
		n, next := 0, ""
		for {
			list, err := client.Resource(kind).List(ctx, metav1.ListOptions{Limit: 500, Continue: next})
			if apierrors.IsNotFound(err) {
				break // the cluster had no such kind
			}
			if err != nil {
				return nil, fmt.Errorf("list %s: %w", kind.Resource, err)
			}
			n += len(list.Items)
			if next = list.Continue; next == "" {
				break
			}
		}
		name := kind.Resource
		if kind == v1.Resource {
			name = "jobs"
		}
		out = append(out, KindCount{Kind: name, Count: n})
	}
	return out, nil
}
