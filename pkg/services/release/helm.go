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

// hookTimeout is the time limit of a hook. A hook is a Job or a pod in a chart.
const hookTimeout = 5 * time.Minute

// helm implements Manager with the library of Helm 3. Each call uses a new Helm configuration, because Helm's configurations can't be used
// concurrently. All calls share the connection.
type helm struct{ *connection }

// NewHelm returns the Manager of a cluster. Concurrent calls must be for different releases. Helm and the API server write messages that aren't
// errors to log.
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

func (h *helm) Get(ctx context.Context, namespace, name string) (*Release, error) {
	found, err := h.list(ctx, namespace, "owner=helm,status!=superseded,name="+name)
	if err != nil || len(found) == 0 {
		return nil, h.explain("read release", name, err)
	}
	return &found[0], nil
}

func (h *helm) List(ctx context.Context, namespace string) ([]Release, error) {
	found, err := h.list(ctx, namespace, "owner=helm,status!=superseded")
	return found, h.cluster.Explain(err)
}

// list returns the current releases. list requests no superseded revisions, because most of the data is in superseded revisions and the current
// revision is never superseded.
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

// Render implements Manager. The result contains the manifest followed by the hooks, like the output of helm template.
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

// render renders the manifest that Helm would send. Templates may look up objects in the cluster.
func (s *session) render(r Request, o chartutil.ReleaseOptions) (rendering, error) {
	c, err := prepareChart(r.Chart, r.Values)
	if err != nil {
		return rendering{}, err
	}
	o.Name, o.Namespace = r.Name, r.Namespace
	return render(engine.New(s.bound), c, r.Values, o, s.caps)
}

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

// endTimeout is how long to wait for an action after the context has ended. Most actions end immediately, because their requests are canceled. An
// action that watches a hook continues.
const endTimeout = 2 * time.Second

// bounded runs an action of Helm until the action finishes or ctx ends. Helm itself doesn't support contexts.
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

// ended returns the error of ctx if ctx has ended, because the end of ctx caused err.
func ended(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}
