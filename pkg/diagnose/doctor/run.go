package doctor

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/openpai/paictl/pkg/cluster/engine"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/cluster"
	"github.com/openpai/paictl/pkg/cluster/preflight"
	"github.com/openpai/paictl/pkg/cluster/shell"
	"github.com/openpai/paictl/pkg/diagnose/checks"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/ui/plural"
	"github.com/openpai/paictl/pkg/ui/terminal"
)

//go:embed scripts/machine.sh
var machineScript string

// Time limits, and the number of concurrent checks.
const (
	checkLimit = time.Minute      // of a check without its own limit
	grace      = 3 * time.Second  // for a check to return after its limit has expired
	apiLimit   = 15 * time.Second // time limit for the first response of the API
	lookLimit  = 2 * time.Minute  // time limit for one machine's output
	parallel   = 8                // concurrent checks
)

// Options are the options of Run.
type Options struct {
	Checks []*Check
	// Machines holds the options for pkg/cluster. The Dialer in these options connects to the machines.
	Machines engine.Options
	// Progress receives a line about each long step. It may be nil.
	Progress func(format string, args ...any)
	// Owner is the value "user@host, pid" that identifies this run on its objects in the cluster.
	Owner string
}

func (o *Options) tell(format string, args ...any) {
	if o.Progress != nil {
		o.Progress(format, args...)
	}
}

func (o *Options) needs() (all Need) {
	for _, c := range o.Checks {
		all |= c.Needs
	}
	return all
}

// Run runs the checks on a cluster. Before it returns, it removes the objects of checks that need pods, even if ctx ends. It returns an error only
// if ctx ends or the connections to machines fail. The report contains all other failures.
func Run(ctx context.Context, c *Cluster, o Options) (*Report, error) {
	c.owner = o.Owner
	c.askAPI(ctx)
	// The check machines-reachable also uses the machines' responses, although its needs don't contain Machines.
	if c.Spec != nil && (o.needs()&Machines != 0 || slices.ContainsFunc(o.Checks, func(c *Check) bool { return c.ID == idReachable })) {
		o.tell("asking %s by SSH", plural.Of(len(c.Spec.Nodes), "machine"))
		if err := c.look(ctx, o.Machines); err != nil {
			return nil, err
		}
	}
	if o.needs()&Pods != 0 && c.Kube != nil && c.apiErr == nil {
		c.pods = newProbe(c, o)
		defer c.pods.end(context.WithoutCancel(ctx))
		go c.pods.run(ctx)
	}
	report := &Report{At: c.Now().UTC(), Results: make([]Result, len(o.Checks))}
	report.Cluster, report.Server = c.name(), c.server()
	o.tell("running %s", plural.Of(len(o.Checks), "check"))
	// Checks that wait for pods don't occupy slots.
	slots := make(chan struct{}, parallel)
	var wg sync.WaitGroup
	for i, check := range o.Checks {
		wg.Go(func() {
			if check.Needs&Pods != 0 && c.pods != nil {
				c.pods.wait(ctx)
			}
			slots <- struct{}{}
			defer func() { <-slots }()
			report.Results[i] = c.run(ctx, check)
		})
	}
	wg.Wait()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	report.count()
	return report, nil
}

func (c *Cluster) name() string {
	switch {
	case c.Config != nil:
		return c.Config.Services.Cluster.Common.ClusterID
	case c.Kube != nil:
		return c.Kube.Context
	}
	return ""
}

func (c *Cluster) server() string {
	if c.Kube != nil {
		return c.Kube.Server
	}
	return ""
}

// askAPI stores an error if the API server doesn't respond.
func (c *Cluster) askAPI(ctx context.Context) {
	if c.Kube == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, apiLimit)
	defer cancel()
	_, err := c.Kube.Client.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if apierrors.IsForbidden(err) {
		return // it responds; the checks report which data this user may not read
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("no answer within %s", apiLimit)
	}
	c.apiErr = c.Kube.Explain(err)
}

func (c *Cluster) look(ctx context.Context, o engine.Options) error {
	volumes := c.volumePaths(ctx)
	o.StepTimeout = lookLimit
	o.Sink, o.Clock = silent{}, c.Now
	l, err := cluster.Inspect(ctx, c.Spec, o, func(n *engine.Node) string { return c.machineProgram(n, volumes[n.Hostname]) })
	if err != nil {
		return err
	}
	c.Inspection = l
	return nil
}

// silent drops all events, because the report contains the results.
type silent struct{}

func (silent) Emit(engine.Event) {}

func (c *Cluster) machineProgram(n *engine.Node, volumes []string) string {
	of := &preflight.Cluster{Kubernetes: &c.Spec.Config.Kubernetes.Kubernetes}
	paths := []string{"/", "/var/lib/kubelet", of.Store(), "/var/log"}
	if n.ControlPlane {
		paths = append(paths, preflight.EtcdPath(of))
	}
	if data := c.Spec.Config.Services.Cluster.Common.DataPath; data != "" {
		paths = append(paths, path.Clean(data))
	}
	paths = append(paths, volumes...)
	return fmt.Sprintf("%s\nPATHS=%s VOLUMES=%s ADDRESS=%s\nm_look\n", checks.FilesystemsScript+machineScript, words(paths), words(volumes), shell.Quote(n.HostIP))
}

// words joins paths to one quoted shell word, separated by spaces. It omits paths with blanks, wildcards or quotes.
func words(paths []string) string {
	plain := slices.DeleteFunc(slices.Clone(paths), func(p string) bool {
		return !path.IsAbs(p) || strings.ContainsFunc(p, func(r rune) bool { return r <= ' ' || strings.ContainsRune("*?[]\\'\"`$", r) })
	})
	return shell.Quote(strings.Join(plain, " "))
}

// volumePaths returns the folders of local PersistentVolumes, by host name. It returns nil if the API doesn't respond.
func (c *Cluster) volumePaths(ctx context.Context) map[string][]string {
	if c.Kube == nil || c.apiErr != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, apiLimit)
	defer cancel()
	list, err := c.Kube.Client.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil // the checks of storage report it
	}
	out := map[string][]string{}
	for i := range list.Items {
		if node, folder := localVolume(&list.Items[i]); node != "" {
			out[node] = append(out[node], folder)
		}
	}
	return out
}

// localVolume returns the machine and the folder of a bound local volume, or "" for other volumes.
func localVolume(v *corev1.PersistentVolume) (node, folder string) {
	switch {
	case v.Status.Phase != corev1.VolumeBound:
		return "", ""
	case v.Spec.Local != nil:
		folder = v.Spec.Local.Path
	case v.Spec.HostPath != nil:
		folder = v.Spec.HostPath.Path
	default:
		return "", ""
	}
	if v.Spec.NodeAffinity == nil || v.Spec.NodeAffinity.Required == nil {
		return "", ""
	}
	for _, t := range v.Spec.NodeAffinity.Required.NodeSelectorTerms {
		for _, e := range t.MatchExpressions {
			if e.Key == corev1.LabelHostname && len(e.Values) == 1 {
				return e.Values[0], folder
			}
		}
	}
	return "", ""
}

// unmet returns the reason why a set of needs isn't met, or "".
func (c *Cluster) unmet(need Need) string {
	switch {
	case need&Folder != 0 && c.Config == nil:
		return "no configuration folder: give -p DIR"
	case need&Managed != 0 && c.Config != nil && c.Spec == nil:
		return "paictl did not install the Kubernetes of this cluster"
	case need&(Machines|Managed) != 0 && c.Spec == nil && c.Config == nil:
		return "machines are checked by SSH only with a configuration folder: give -p DIR"
	case need&(Machines|Managed) != 0 && c.Spec == nil:
		return "paictl did not install the Kubernetes of this cluster, and doesn't connect to its machines"
	case need&Machines != 0 && len(c.machines()) == 0:
		return "no machine answers by SSH"
	case need&(API|Pods|Pushed) != 0 && c.Kube == nil:
		return "the API can't be reached: give --kubeconfig"
	case need&(API|Pods|Pushed) != 0 && apierrors.IsUnauthorized(c.apiErr):
		return "the API server doesn't accept these credentials"
	case need&(API|Pods|Pushed) != 0 && c.apiErr != nil:
		return "the API server doesn't answer"
	}
	return ""
}

func (c *Cluster) run(ctx context.Context, check *Check) (r Result) {
	r = Result{ID: check.ID, Group: check.Group, Title: check.Title, Looks: check.Examines, Needs: check.Needs.Names(), Docs: check.Docs(), Findings: []Finding{}, Verdict: OK}
	start := time.Now()
	defer func() { r.Seconds = float64(time.Since(start).Milliseconds()) / 1000 }()
	if why := c.unmet(check.Needs); why != "" {
		r.Verdict, r.Findings = Skipped, skip("%s", why)
		return r
	}
	if check.Needs&Pushed != 0 {
		if copied, err := c.Pushed(ctx); err == nil && copied == nil {
			r.Verdict, r.Findings = Skipped, skip("no configuration was pushed to the cluster")
			return r
		}
	}
	limit := check.Limit
	if limit == 0 {
		limit = checkLimit
	}
	bounded, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	type outcome struct {
		findings []Finding
		err      error
	}
	done := make(chan outcome, 1)
	go func() {
		var out outcome
		defer func() {
			if p := recover(); p != nil {
				out.err = fmt.Errorf("the check itself failed: %v", p)
			}
			done <- out
		}()
		out.findings, out.err = check.Run(bounded, c)
	}()
	var out outcome
	select {
	case out = <-done:
	case <-bounded.Done():
		// A check that ignores its time limit is abandoned.
		select {
		case out = <-done:
		case <-time.After(grace + check.Ends):
			out.err = context.DeadlineExceeded
		}
	}
	r.Findings = append(r.Findings, out.findings...)
	if out.err != nil {
		if errors.Is(out.err, context.DeadlineExceeded) {
			out.err = hint.Errorf("run it alone, with --log-file FILE: paictl doctor --only "+check.ID, "it did not end within %s", limit)
		}
		r.Findings = append(r.Findings, Finding{Verdict: Warning, Message: "could not be checked: " + out.err.Error(), Remedy: hint.Of(out.err)})
	}
	for i, f := range r.Findings {
		f.Message, f.Evidence, f.Remedy = terminal.Line(f.Message), terminal.Line(f.Evidence), terminal.Line(f.Remedy)
		r.Findings[i] = f
		if f.Verdict.rank() > r.Verdict.rank() {
			r.Verdict = f.Verdict
		}
	}
	// If only a part of the check was skipped, the verdict is that of the other part.
	if r.Verdict == Skipped && slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Verdict == OK }) {
		r.Verdict = OK
	}
	slices.SortStableFunc(r.Findings, func(a, b Finding) int { return b.Verdict.rank() - a.Verdict.rank() })
	return r
}
