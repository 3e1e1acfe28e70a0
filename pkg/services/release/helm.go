package release

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"k8s.io/client-go/kubernetes"

	"github.com/openpai/paictl/pkg/kube"
)

// hookTimeout is the time limit of a hook. A hook of a chart is a Job or a pod that runs until it exits.
const hookTimeout = 5 * time.Minute

// helm implements Manager with the library of Helm 3. Each call uses a new Helm configuration, because configurations can't be shared safely. The
// calls share the connection.
type helm struct{ *connection }

// NewHelm returns the Manager of a cluster. Concurrent calls are allowed if they are for different releases. Messages of Helm and the API server
// that aren't errors are written to log.
func NewHelm(c *kube.Cluster, log *slog.Logger) (Manager, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	conn, err := connect(c, log)
	if err != nil {
		return nil, err
	}
	return &helm{conn}, nil
}

// Get implements Manager.
func (h *helm) Get(ctx context.Context, namespace, name string) (*Release, error) {
	found, err := h.list(ctx, namespace, "owner=helm,status!=superseded,name="+name)
	if err != nil || len(found) == 0 {
		return nil, h.explain("read release", name, err)
	}
	return &found[0], nil
}

// List implements Manager.
func (h *helm) List(ctx context.Context, namespace string) ([]Release, error) {
	found, err := h.list(ctx, namespace, "owner=helm,status!=superseded")
	return found, h.cluster.Explain(err)
}

// list returns the current releases. It doesn't request superseded revisions, which are most of the data, because the current revision is never
// superseded.
func (h *helm) list(ctx context.Context, namespace, selector string) ([]Release, error) {
	client, err := kubernetes.NewForConfig(kube.Protobuf(h.config))
	if err != nil {
		return nil, err
	}
	records, err := readRecords(ctx, client, namespace, selector)
	if err != nil {
		return nil, err
	}
	out := []Release{}
	for _, r := range newest(records) {
		one, err := r.release()
		if err != nil {
			return nil, err
		}
		out = append(out, one)
	}
	return out, nil
}

// Render implements Manager. The result contains the manifest, and after it the hooks, like the output of helm template.
func (h *helm) Render(ctx context.Context, r Request) (string, error) {
	s, err := h.session(ctx, r.Namespace)
	if err != nil {
		return "", h.explain("render", r.Name, err)
	}
	past, err := s.past(ctx, r.Name)
	if err != nil {
		return "", h.explain("render", r.Name, err)
	}
	out, err := s.render(r, past.next())
	return out.text(), h.explain("render", r.Name, err)
}

// render renders the chart as Helm would send it. Templates may look up objects in the cluster.
func (s *session) render(r Request, o chartutil.ReleaseOptions) (rendering, error) {
	c, err := prepareChart(r.Chart, r.Values)
	if err != nil {
		return rendering{}, err
	}
	o.Name, o.Namespace = r.Name, r.Namespace
	return render(engine.New(s.bound), c, r.Values, o, s.caps)
}

// Rollback implements Manager.
func (h *helm) Rollback(ctx context.Context, namespace, name string, revision int) error {
	s, err := h.session(ctx, namespace)
	if err == nil {
		s.kube.back = true
		err = bounded(ctx, func() error {
			a := action.NewRollback(s.helm())
			a.Version, a.MaxHistory, a.Timeout = revision, historyMax, hookTimeout
			return a.Run(name)
		})
	}
	return h.explain(fmt.Sprintf("go back to revision %d of", revision), name, err)
}

// Uninstall implements Manager.
func (h *helm) Uninstall(ctx context.Context, namespace, name string) error {
	s, err := h.session(ctx, namespace)
	if err == nil {
		err = s.uninstall(ctx, name)
	}
	return h.explain("uninstall", name, err)
}

func (s *session) uninstall(ctx context.Context, name string) error {
	s.kube.undeleted = nil
	err := bounded(ctx, func() error {
		a := action.NewUninstall(s.helm())
		a.IgnoreNotFound, a.Timeout = true, hookTimeout
		_, err := a.Run(name)
		return err
	})
	if err != nil && ctx.Err() == nil && len(s.kube.undeleted) > 0 {
		return oneLine(s.kube.undeleted)
	}
	return err
}

// endTimeout is how long to wait for an action after its context has ended. The action usually ends at once, because its requests are interrupted.
// Only an action that watches a hook continues.
const endTimeout = 2 * time.Second

// bounded runs an action of Helm until it finishes or ctx ends. Helm itself doesn't support contexts.
func bounded(ctx context.Context, run func() error) error {
	done := make(chan error, 1)
	go func() { done <- run() }()
	select {
	case err := <-done:
		return ended(ctx, err)
	case <-ctx.Done():
	}
	timer := time.NewTimer(endTimeout)
	defer timer.Stop()
	select {
	case err := <-done:
		return ended(ctx, err)
	case <-timer.C:
		return ctx.Err()
	}
}

// ended returns the error of ctx if ctx has ended, because that has caused err.
func ended(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}
