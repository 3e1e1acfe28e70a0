package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/diagnose/checks"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/layout"
	schedulerapi "github.com/openpai/paictl/pkg/scheduler/api"
	"github.com/openpai/paictl/pkg/scheduler/cell"
	"github.com/openpai/paictl/pkg/scheduler/claim"
	schedulerconfig "github.com/openpai/paictl/pkg/scheduler/config"
	"github.com/openpai/paictl/pkg/scheduler/machines"
	"github.com/openpai/paictl/pkg/services"
)

func gpuChecks() []*Check {
	return []*Check{
		{
			ID: "gpu-hardware", Group: "gpus", Title: "Machines have the layout's GPUs", Needs: Machines,
			Examines: "GPUs on the PCI bus of each machine, and those that NVIDIA's driver sees, compared with its SKU in layout.yaml",
			Run:      gpuHardware,
		},
		{
			ID: "gpu-driver", Group: "gpus", Title: "The GPU driver works, with the same version everywhere", Needs: Machines,
			Examines: "NVIDIA's driver on each machine with its GPUs: whether it answers, the version that is loaded and that of layout.yaml and kubernetes-configuration.yaml, and whether machines of a SKU agree",
			Run:      gpuDriver,
		},
		{
			ID: "gpu-toolkit", Group: "gpus", Title: "NVIDIA's container toolkit is installed", Needs: Machines,
			Examines: "nvidia-ctk on each machine with GPUs of NVIDIA, and whether machines have one version",
			Run:      gpuToolkit,
		},
		{
			ID: "gpu-next-boot", Group: "gpus", Title: "The GPU driver works after the next boot", Needs: API,
			Examines: "the condition GPUDriverMissingAtNextBoot of nodes: a new kernel is installed for which the driver has no module",
			Run:      nodeCondition(checks.ConditionNextBoot, "the GPU driver will be missing after the next boot"),
		},
		{
			ID: "agent-running", Group: "gpus", Title: "The agent runs on each machine with GPUs", Needs: API | Pushed,
			Examines: "the agent's pod on each worker that the layout gives GPUs, and whether it is ready",
			Run:      agentRunning,
		},
		{
			ID: "gpus-published", Group: "gpus", Title: "Agents publish the machines' GPUs", Needs: API | Pushed,
			Examines: "the ResourceSlices and the annotation of each machine with GPUs, compared with the number in the layout",
			Run:      gpusPublished,
		},
		{
			ID: "gpus-healthy", Group: "gpus", Title: "GPUs are healthy", Needs: API,
			Examines: "the condition GPUsUnhealthy of nodes, which agents set by the driver's errors (XID), memory errors, heat and lost devices",
			Run:      nodeCondition(checks.ConditionGPUsUnhealthy, "GPUs aren't healthy"),
		},
		{
			ID: "scheduler-hardware", Group: "gpus", Title: "The scheduler's cells are the machines' GPUs", Needs: API,
			Examines: "the scheduler's configuration, compared with the GPUs that each machine reports: missing, too many, in no cell, split differently",
			Run:      schedulerHardware,
		},
		{
			ID: "scheduler-layout", Group: "gpus", Title: "The scheduler works with the pushed configuration", Needs: API | Pushed,
			Examines: "the scheduler's ConfigMap, compared with the one that follows from the cluster's copy",
			Run:      schedulerLayout,
		},
	}
}

// gpusOf returns the GPUs of a machine in the layout. It returns nil if the layout lists no GPUs or only simulated GPUs.
func gpusOf(l *layout.Layout, m layout.Machine) *layout.GPU {
	sku := l.MachineSKU[m.SKU]
	if sku.GPU == nil || sku.GPU.Count == 0 || sku.GPU.Simulated {
		return nil
	}
	return sku.GPU
}

func gpuHardware(ctx context.Context, c *Cluster) ([]Finding, error) {
	out, err := ofPreflight(oneOf("gpu"))(ctx, c)
	if len(out) == 0 && !slices.ContainsFunc(c.machines(), func(m *machine) bool { return gpusOf(&c.Config.Layout, m.Machine) != nil }) {
		return skip("no machine has real GPUs by layout.yaml"), nil
	}
	return out, err
}

func isNVIDIA(g *layout.GPU) bool {
	return g != nil && strings.HasPrefix(strings.ToUpper(g.Type), "NVIDIA")
}

func gpuDriver(ctx context.Context, c *Cluster) ([]Finding, error) {
	out, err := ofPreflight(oneOf("gpu-driver"))(ctx, c)
	by := map[string]map[string][]string{} // machines by SKU and version
	looked := 0
	wanted := c.Config.Kubernetes.Kubernetes.GPUDriver
	for _, m := range c.machines() {
		g := gpusOf(&c.Config.Layout, m.Machine)
		if !isNVIDIA(g) {
			continue
		}
		looked++
		have := m.Facts.Driver
		if have == "" || m.Facts.DriverError != "" {
			continue
		}
		if by[m.SKU] == nil {
			by[m.SKU] = map[string][]string{}
		}
		by[m.SKU][have] = append(by[m.SKU][have], m.Hostname)
		if v := wanted.Version; v != "" && wanted.Policy == config.GPUDriverInstall && have != v && !strings.HasPrefix(have, v+".") {
			out = append(out, warning(m.Hostname, "paictl node driver upgrade "+m.Hostname+" -p DIR", "the driver %s is loaded, but the configuration says %s", have, v))
		}
	}
	for _, sku := range sortedKeys(by) {
		if f := mixed("drivers of the machines "+sku, by[sku], "paictl node driver upgrade installs the same version: otherwise jobs on several machines are slow or fail"); f != nil {
			out = append(out, *f)
		}
	}
	if looked == 0 {
		return skip("no machine has real GPUs of NVIDIA by layout.yaml"), nil
	}
	return out, err
}

func gpuToolkit(_ context.Context, c *Cluster) (out []Finding, _ error) {
	by := map[string][]string{}
	looked := 0
	for _, m := range c.machines() {
		if !isNVIDIA(gpusOf(&c.Config.Layout, m.Machine)) || !c.joined(m.Hostname) {
			continue
		}
		looked++
		if v := m.value("toolkit"); v != "" {
			by[v] = append(by[v], m.Hostname)
		}
	}
	if looked == 0 {
		return skip("no machine has real GPUs of NVIDIA by layout.yaml"), nil
	}
	if len(by) == 0 {
		// The agent contains its own toolkit and reports whether this toolkit is sufficient.
		return []Finding{note("", "no machine has its own toolkit: the agent's is used")}, nil
	}
	if f := mixed("container toolkits", by, "install the same version on all machines; the agent uses its own on machines without one"); f != nil {
		out = append(out, *f)
	}
	return out, nil
}

// nodeCondition returns a check for nodes on which a condition of the agent is true. It recognizes agents by the condition GPUsUnhealthy, because
// each agent with GPUs sets this condition.
func nodeCondition(kind corev1.NodeConditionType, message string) func(context.Context, *Cluster) ([]Finding, error) {
	return func(ctx context.Context, c *Cluster) (out []Finding, _ error) {
		nodes, err := c.Nodes(ctx)
		if err != nil {
			return nil, err
		}
		known, agents := false, false
		remedy, _ := checks.Condition(string(kind))
		for i := range nodes {
			cond := condition(&nodes[i], kind)
			known = known || cond != nil
			agents = agents || condition(&nodes[i], checks.ConditionGPUsUnhealthy) != nil
			if cond != nil && cond.Status == corev1.ConditionTrue {
				out = append(out, problem(nodes[i].Name, remedy, "%s", message).seen(strings.ReplaceAll(cond.Message, "\n", "; ")))
			}
		}
		switch {
		case known:
			return out, nil
		case agents:
			return skip("agents report GPUs, but not the condition %s: it needs NVIDIA's driver and a kernel in /boot", kind), nil
		}
		return skip("no agent reports GPUs"), nil
	}
}

// gpuMachines returns the number of GPUs of each machine with GPUs for jobs, according to the cluster's copy of the configuration.
func (c *Cluster) gpuMachines(ctx context.Context) (map[string]int, error) {
	copied, err := c.Pushed(ctx)
	if err != nil {
		return nil, err
	}
	parsed, err := config.Parse("", copied.Files)
	if err != nil {
		return nil, err
	}
	out := map[string]int{}
	for _, m := range parsed.Layout.MachineList {
		if g := parsed.Layout.MachineSKU[m.SKU].GPU; g != nil && g.Count > 0 {
			out[m.Hostname] = g.Count * g.Shares()
		}
	}
	return out, nil
}

const agentService = "agent"

func (c *Cluster) agentStarted(ctx context.Context) (bool, error) {
	all, err := c.Services(ctx)
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(all, func(s services.Status) bool { return s.Name == agentService && s.Revision > 0 }), nil
}

// machinesWithGPUs returns the ready nodes that should run the agent, and the configured number of devices of each node. If the check doesn't apply,
// the finding none contains the reason.
func (c *Cluster) machinesWithGPUs(ctx context.Context) (nodes []corev1.Node, gpus map[string]int, none []Finding, _ error) {
	started, err := c.agentStarted(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	if gpus, err = c.gpuMachines(ctx); err != nil {
		return nil, nil, nil, err
	}
	if len(gpus) == 0 {
		return nil, nil, skip("no machine has GPUs by the cluster's configuration"), nil
	}
	if !started {
		return nil, nil, skip("the agent wasn't started: paictl service start -n agent"), nil
	}
	all, err := c.Nodes(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	on := c.agentNodes(ctx, all, gpus)
	for i := range all {
		if n := &all[i]; gpus[n.Name] > 0 && isReady(n) && on(n) {
			nodes = append(nodes, *n)
		}
	}
	return nodes, gpus, nil, nil
}

func agentRunning(ctx context.Context, c *Cluster) (out []Finding, _ error) {
	nodes, _, none, err := c.machinesWithGPUs(ctx)
	if err != nil || none != nil {
		return none, err
	}
	pods, err := c.Kube.Client.CoreV1().Pods(kube.SystemNamespace).List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=" + agentService})
	if err != nil {
		return nil, fmt.Errorf("list the agent's pods: %w", err)
	}
	for i := range nodes {
		n := &nodes[i]
		at := slices.IndexFunc(pods.Items, func(p corev1.Pod) bool { return p.Spec.NodeName == n.Name && p.DeletionTimestamp == nil })
		if at < 0 {
			out = append(out, problem(n.Name, "paictl service start -n agent; if it still doesn't run there, a taint or a missing label prevents it: kubectl describe node "+n.Name, "no agent runs there: its GPUs aren't allocated or monitored"))
			continue
		}
		if ready, why := podReady(&pods.Items[at]); !ready {
			out = append(out, problem(n.Name, "kubectl -n "+kube.SystemNamespace+" logs "+pods.Items[at].Name+" --all-containers", "the agent there isn't ready: its GPUs aren't allocated").seen(why))
		}
	}
	return out, nil
}

// agentNodes returns a function that reports whether the agent should run on a node, as its DaemonSet determines. A missing DaemonSet, or one that
// selects no node with GPUs, is a problem. The agent should then run on workers.
func (c *Cluster) agentNodes(ctx context.Context, nodes []corev1.Node, gpus map[string]int) func(*corev1.Node) bool {
	workers := func(n *corev1.Node) bool { return n.Labels["pai-worker"] == "true" }
	sets, err := c.Kube.Client.AppsV1().DaemonSets(kube.SystemNamespace).List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=" + agentService})
	if err != nil {
		return workers
	}
	selected := func(n *corev1.Node) bool {
		return slices.ContainsFunc(sets.Items, func(s metaSet) bool { return selects(&s.Spec.Template.Spec, n) })
	}
	if slices.ContainsFunc(nodes, func(n corev1.Node) bool { return gpus[n.Name] > 0 && selected(&n) }) {
		return selected
	}
	return workers
}

func gpusPublished(ctx context.Context, c *Cluster) (out []Finding, _ error) {
	nodes, gpus, none, err := c.machinesWithGPUs(ctx)
	if err != nil || none != nil {
		return none, err
	}
	published, err := c.Slices(ctx)
	if err != nil {
		return nil, err
	}
	counts := map[string]int{}
	for i := range published {
		if s := &published[i].Spec; s.Driver == claim.Driver && s.NodeName != nil {
			counts[*s.NodeName] += len(s.Devices)
		}
	}
	for i := range nodes {
		n := &nodes[i]
		if counts[n.Name] == 0 {
			out = append(out, problem(n.Name, "see agent-running; its log: kubectl -n "+kube.SystemNamespace+" logs -l app.kubernetes.io/name=agent --field-selector spec.nodeName="+n.Name, "publishes no GPUs, but has %d in the configuration", gpus[n.Name]))
			continue
		}
		var told schedulerapi.NodeDevices
		if text := n.Annotations[schedulerapi.DevicesAnnotation]; text == "" || json.Unmarshal([]byte(text), &told) != nil {
			out = append(out, warning(n.Name, "restart its agent: kubectl -n "+kube.SystemNamespace+" delete pod -l app.kubernetes.io/name=agent --field-selector spec.nodeName="+n.Name, "doesn't report its GPUs to the scheduler"))
		}
	}
	return out, nil
}

// schedulerText returns the scheduler's configuration, or "" if the cluster doesn't have paictl's scheduler.
func (c *Cluster) schedulerText(ctx context.Context) (string, error) {
	m, err := c.Kube.Client.CoreV1().ConfigMaps(kube.SystemNamespace).Get(ctx, schedulerconfig.ConfigMap, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read the scheduler's configuration: %w", err)
	}
	return m.Data[schedulerconfig.ConfigMapKey], nil
}

const noScheduler = "the scheduler wasn't started"

func schedulerHardware(ctx context.Context, c *Cluster) (out []Finding, _ error) {
	text, err := c.schedulerText(ctx)
	if err != nil {
		return nil, err
	}
	if text == "" {
		return skip(noScheduler), nil
	}
	cells, found := schedulerconfig.Parse(schedulerconfig.ConfigMapKey, []byte(text))
	if errs := found.Errors(); len(errs) > 0 {
		return []Finding{problem("", "paictl scheduler check -p DIR lists the mistakes; correct them and push", "the scheduler's configuration has mistakes; it uses the previous one").seen(errs[0].Message)}, nil
	}
	told, err := machines.Read(ctx, c.Kube.Client)
	if err != nil {
		return nil, err
	}
	differ, _, err := machines.Compare(cells, told)
	if err != nil {
		return []Finding{problem("", "paictl scheduler check -p DIR", "the scheduler's configuration can't be used").seen(err.Error())}, nil
	}
	for _, d := range differ {
		f := problem(d.Node, d.Remedy, "differs from the scheduler's cells: %s", d.Message)
		if d.Slower {
			f.Verdict = Warning
		}
		// The check gpus-healthy reports this GPU. The scheduler's configuration is right.
		if n := told.Node(d.Node); d.Failed && n != nil && toldUnhealthy(n) {
			continue
		}
		out = append(out, f)
	}
	return out, nil
}

// toldUnhealthy reports whether a condition of the node reports GPUs that don't work.
func toldUnhealthy(n *corev1.Node) bool {
	cond := condition(n, "GPUsUnhealthy")
	return cond != nil && cond.Status == corev1.ConditionTrue
}

func schedulerLayout(ctx context.Context, c *Cluster) ([]Finding, error) {
	text, err := c.schedulerText(ctx)
	if err != nil {
		return nil, err
	}
	if text == "" {
		return skip(noScheduler), nil
	}
	have, found := schedulerconfig.Parse(schedulerconfig.ConfigMapKey, []byte(text))
	if len(found.Errors()) > 0 {
		return skip("the scheduler's configuration has mistakes: see scheduler-hardware"), nil
	}
	copied, err := c.Pushed(ctx)
	if err != nil {
		return nil, err
	}
	parsed, err := config.Parse("", copied.Files)
	if err != nil {
		return nil, err
	}
	want, mistakes := schedulerconfig.FromCluster(parsed.Layout, config.ServicesFile, copied.Files[config.ServicesFile])
	if errs := mistakes.Errors(); len(errs) > 0 {
		return []Finding{problem("", "paictl scheduler check -p DIR lists the mistakes; correct them and push", "the cluster's copy doesn't define a valid configuration of the scheduler").seen(errs[0].Message)}, nil
	}
	a, errA := cell.New(have)
	b, errB := cell.New(want)
	if err := errors.Join(errA, errB); err != nil {
		return nil, err
	}
	var differ []string
	for _, name := range slices.Compact(sorted(append(slices.Clone(a.Nodes()), b.Nodes()...))) {
		if !slices.Equal(a.Devices(name), b.Devices(name)) || len(b.Devices(name)) > 0 && a.LeafType(name) != b.LeafType(name) {
			differ = append(differ, name)
		}
	}
	if len(differ) > 0 {
		return []Finding{problem("", "paictl service start -n scheduler applies the pushed configuration", "the scheduler's cells of %s aren't those of the pushed layout", some(differ))}, nil
	}
	return nil, nil
}

func sorted(list []string) []string {
	slices.Sort(list)
	return list
}
