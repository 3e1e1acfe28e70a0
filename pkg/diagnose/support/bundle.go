package support

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/openpai/paictl/pkg/config/store"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/services"
)

type bundle struct {
	o       Options
	started time.Time
	archive *archive
	// namespaces contains the namespaces of the platform, of jobs, of Kubernetes and of other services.
	namespaces []string
	services   []services.Status
	serviceErr error
	// shown is the content of the folder with masked secrets. The field copy is the cluster's copy of the configuration. The field history lists the
	// revisions of the copy.
	shown   store.Shown
	copy    *store.Copy
	history []store.Revision
	copyErr error

	mu   sync.Mutex
	pods []podLogs // whose logs are read
}

// Write writes a bundle to w. If a part can't be read, the index contains the error. Write returns an error only if the archive can't be written or
// ctx ends.
func Write(ctx context.Context, w io.Writer, o Options) (*Index, error) {
	o.Limits.defaults()
	set(&o.MaxSize, DefaultMaxSize)
	if o.Progress == nil {
		o.Progress = func(string, string) {}
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	b := &bundle{o: o, started: o.Clock()}
	b.probe(ctx)
	b.findNamespaces(ctx)
	known := b.knownSecrets(ctx)
	b.archive = newArchive(w, &b.o, known.set(), stop)
	for _, why := range known.problems {
		b.archive.missing("secrets to look for", why)
	}
	b.collect(ctx)
	ix := Index{
		Version: o.Version, Command: o.Command, Started: b.started, Finished: o.Clock(), Secrets: known.count, Unsearchable: known.unsearchable,
	}
	if o.Config != nil {
		ix.Cluster = o.Config.Kubernetes.Kubernetes.ClusterName
	}
	if o.Cluster != nil {
		ix.Server = o.Cluster.Server
	}
	if o.Since > 0 {
		ix.Since = b.since()
	}
	ix.Command, ix.Cluster, ix.Server = b.archive.set.String(ix.Command), b.archive.set.String(ix.Cluster), b.archive.set.String(ix.Server)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return b.archive.finish(ix)
}

func (b *bundle) since() time.Time { return b.started.Add(-b.o.Since) }

func (b *bundle) wants(part string) bool { return !slices.Contains(b.o.Without, part) }

// progress reports progress without secrets.
func (b *bundle) progress(part, message string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.o.Progress(part, b.archive.set.String(message))
}

func (b *bundle) collect(ctx context.Context) {
	var wg sync.WaitGroup
	for _, p := range []struct {
		name string
		run  func(context.Context)
	}{
		{PartConfiguration, b.configuration}, {PartKubernetes, b.kubernetes}, {PartServices, b.servicePart},
		{PartScheduler, b.scheduler}, {PartReports, b.reports},
	} {
		if !b.wants(p.name) {
			b.archive.missing(p.name, errors.New("left out with --without"))
			continue
		}
		if p.name == PartReports && len(b.o.Reports) == 0 {
			continue
		}
		if b.o.Cluster == nil && slices.Contains([]string{PartKubernetes, PartServices, PartScheduler}, p.name) {
			b.archive.missing(p.name, b.o.ClusterErr)
			b.progress(p.name, b.o.ClusterErr.Error())
			continue
		}
		wg.Go(func() {
			ctx, cancel := context.WithTimeoutCause(ctx, b.o.Limits.Part, fmt.Errorf("not finished within %s", b.o.Limits.Part))
			defer cancel()
			begun := b.o.Clock()
			p.run(ctx)
			if ctx.Err() == nil {
				b.progress(p.name, fmt.Sprintf("done (%.1f s)", b.o.Clock().Sub(begun).Seconds()))
			}
		})
	}
	if b.wants(PartMachines) {
		wg.Go(func() { b.machines(ctx) })
	} else {
		b.archive.missing(PartMachines, errors.New("left out with --without"))
	}
	wg.Wait()
	if ctx.Err() != nil {
		return
	}
	// Collect logs last, so that the archive omits logs rather than other parts if --max-size is too small.
	if !b.wants(PartLogs) {
		b.archive.missing(PartLogs, errors.New("left out with --without"))
		return
	}
	b.logs(ctx)
}

// probe checks whether the API responds. Without this check, many requests to a failed server would take many times the timeout.
func (b *bundle) probe(ctx context.Context) {
	if b.o.Cluster == nil {
		return
	}
	ctx, cancel := context.WithTimeoutCause(ctx, b.o.Limits.Part/3, fmt.Errorf("no answer within %s", b.o.Limits.Part/3))
	defer cancel()
	_, err := b.get(ctx, "version")
	if _, answered := errors.AsType[*apierrors.StatusError](err); err != nil && (!answered || apierrors.IsUnauthorized(err)) {
		b.o.ClusterErr = b.o.Cluster.Explain(err)
		b.o.Cluster = nil
	}
}

func (b *bundle) findNamespaces(ctx context.Context) {
	b.namespaces = []string{kube.SystemNamespace, kube.JobNamespace, "kube-system", "kube-flannel"}
	if b.o.Cluster == nil || b.o.Services == nil {
		return
	}
	ctx, cancel := context.WithTimeoutCause(ctx, b.o.Limits.Part/3, fmt.Errorf("no answer within %s", b.o.Limits.Part/3))
	defer cancel()
	b.services, b.serviceErr = b.o.Services(ctx)
	for _, s := range b.services {
		if !slices.Contains(b.namespaces, s.Namespace) && s.Namespace != "" {
			b.namespaces = append(b.namespaces, s.Namespace)
		}
	}
}

// reports adds the output of other commands, such as "paictl status" and "paictl doctor".
func (b *bundle) reports(ctx context.Context) {
	for _, r := range b.o.Reports {
		b.archive.add(PartReports+"/"+r.Name+".json", r.What, func(w io.Writer) error {
			v, err := r.Ask(ctx)
			if err != nil {
				return err
			}
			return writeJSON(w, v)
		})
	}
}

func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false) // as text, it would be harder to read and to search
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
