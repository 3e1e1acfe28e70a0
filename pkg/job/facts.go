package job

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/job/protocol/render"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/scheduler/cell"
	schedulerconfig "github.com/openpai/paictl/pkg/scheduler/config"
)

// labelWorker is the label of nodes that run jobs.
const labelWorker = "pai-worker"

// Labels of claims: labelShare is OpenPAI's label; labelDefault marks the storages that a job mounts if it requests its user's default storages.
const (
	labelShare   = "share"
	labelDefault = "paictl.openpai.org/default-storage"
)

// Facts describe the cluster for the checks of a submission.
type Facts struct {
	Configuration api.Configuration
	Cluster       render.Cluster

	unknown []string // the facts that could not be read, and the reasons
}

// Complete returns an UnavailableError if some facts could not be read. Checks with incomplete facts are weaker. For example, they accept any name of
// a virtual cluster.
func (f *Facts) Complete() error {
	if len(f.unknown) == 0 {
		return nil
	}
	return hint.Wrap(&UnavailableError{errors.New("the cluster's resources for jobs are not known now: " + strings.Join(f.unknown, "; "))}, "try again in a moment")
}

// ErrNoConfiguration is returned if the job controller isn't started.
var ErrNoConfiguration = errors.New("this cluster doesn't run jobs: the job controller isn't started")

// Facts reads the configuration and the resources of the cluster. It leaves out resources that don't exist or that the user may not read, and checks
// then ignore them.
func (c *Client) Facts(ctx context.Context) (*Facts, error) {
	f := &Facts{}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		m, err := c.Client.CoreV1().ConfigMaps(kube.SystemNamespace).Get(ctx, api.ConfigMap, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return hint.Wrap(ErrNoConfiguration, "start it: paictl service start -n job-controller")
		}
		if err != nil {
			return fmt.Errorf("read the cluster's resources for jobs: %w", err)
		}
		f.Configuration = api.ReadConfiguration(m.Data)
		return nil
	})
	var hardware, storages string
	g.Go(func() (err error) {
		hardware, err = c.hardware(ctx, &f.Cluster)
		return err
	})
	g.Go(func() (err error) {
		f.Cluster.Storages, err = c.storages(ctx)
		if f.Cluster.Storages == nil {
			storages = "the storages may not be read"
		}
		return err
	})
	if err := g.Wait(); err != nil {
		return nil, c.Explain(err)
	}
	f.Cluster.PeersURL = f.Configuration.PeersURL
	f.Cluster.RuntimeImage, f.Cluster.PullSecret = f.Configuration.RuntimeImage, f.Configuration.PullSecret
	f.Cluster.SchedulerName, f.Cluster.Domain = f.Configuration.SchedulerName, f.Configuration.DNSDomain
	f.Cluster.Claims = f.Configuration.Claims
	if f.Cluster.SchedulerName == "" {
		hardware = ""
		f.Cluster.VirtualClusters, f.Cluster.SKUs = nil, nil // the scheduler that enforces them doesn't run
	}
	for _, text := range []string{hardware, storages} {
		if text != "" {
			f.unknown = append(f.unknown, text)
		}
	}
	return f, nil
}

// storages returns the claims that jobs may mount, by name. It returns nil if the user may not list claims.
func (c *Client) storages(ctx context.Context) (map[string]render.Storage, error) {
	list, err := c.Client.CoreV1().PersistentVolumeClaims(c.Namespace).List(ctx, metav1.ListOptions{})
	if apierrors.IsForbidden(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the storages of jobs: %w", err)
	}
	out := map[string]render.Storage{}
	for i := range list.Items {
		claim := &list.Items[i]
		out[claim.Name] = render.Storage{
			Claim: claim.Name, PerUser: claim.Labels[labelShare] == "false", ReadOnly: readOnly(claim.Spec.AccessModes),
			Default: claim.Labels[labelDefault] == "true",
		}
	}
	return out, nil
}

func readOnly(modes []corev1.PersistentVolumeAccessMode) bool {
	for _, m := range modes {
		if m != corev1.ReadOnlyMany {
			return false
		}
	}
	return len(modes) > 0
}

// hardware stores three facts in out: the nodes that run jobs, the cells of virtual clusters, and the share of a machine that goes with one of its
// GPUs. unknown says which of these could not be read.
func (c *Client) hardware(ctx context.Context, out *render.Cluster) (unknown string, err error) {
	nodes, err := c.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil && !apierrors.IsForbidden(err) {
		return "", fmt.Errorf("read the nodes: %w", err)
	}
	if err != nil {
		nodes, unknown = nil, "the nodes may not be read"
	}
	marked := func(n corev1.Node) bool { return n.Labels[labelWorker] == "true" }
	if nodes == nil || slices.ContainsFunc(nodes.Items, marked) {
		out.NodeLabels = map[string]string{labelWorker: "true"}
	}
	if nodes != nil {
		out.NoRDMA = mostOf(nodes.Items, out.NodeLabels, render.ResourceRDMA) == 0
	}
	if nodes != nil && len(nodes.Items) > 0 {
		most := mostOf(nodes.Items, out.NodeLabels, render.ResourceGPU)
		out.GPUs = &most
	}
	m, err := c.Client.CoreV1().ConfigMaps(kube.SystemNamespace).Get(ctx, schedulerconfig.ConfigMap, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return "the scheduler's configuration can't be read", nil
	}
	if err != nil {
		return "", fmt.Errorf("read the scheduler's configuration: %w", err)
	}
	config, found := schedulerconfig.Parse(schedulerconfig.ConfigMapKey, []byte(m.Data[schedulerconfig.ConfigMapKey]))
	if len(found.Errors()) > 0 {
		// The scheduler continues with its previous configuration, which other programs can't read.
		return "the scheduler's configuration has a mistake", nil
	}
	core, err := cell.New(config)
	if err != nil {
		return "the scheduler's configuration has a mistake", nil //nolint:nilerr // as above
	}
	out.VirtualClusters, out.ReserveGPUMachines = owned(&config, core.Virtual()), config.ReserveGPUMachines
	if nodes != nil {
		cpu, memory := c.platform(ctx)
		out.SKUs = shares(nodes.Items, machinesByLeaf(core.Physical()), config.Processors, cpu, memory)
	}
	return unknown, nil
}

// mostOf returns the largest number of devices of a kind on a node with the labels.
func mostOf(nodes []corev1.Node, marks map[string]string, device corev1.ResourceName) (most int) {
	for i := range nodes {
		if devices := nodes[i].Status.Capacity[device]; labels.SelectorFromSet(marks).Matches(labels.Set(nodes[i].Labels)) {
			most = max(most, int(devices.Value()))
		}
	}
	return most
}

// platform returns how much the programs that run on every machine request, in thousandths of a processor and in MB. A task that needs this part of a
// machine would wait forever. Both results are 0 if the DaemonSets can't be read.
func (c *Client) platform(ctx context.Context) (milliCPU, memoryMB int) {
	list, err := c.Client.AppsV1().DaemonSets(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return 0, 0
	}
	for i := range list.Items {
		for _, container := range list.Items[i].Spec.Template.Spec.Containers {
			asks := container.Resources.Requests
			milliCPU += int(asks.Cpu().MilliValue())
			memoryMB += int((asks.Memory().Value() + 1<<20 - 1) >> 20)
		}
	}
	return milliCPU, memoryMB
}

// owned counts the GPUs and the CPU cells of each virtual cluster by type.
func owned(config *cell.Config, virtual map[string][]cell.CellStatus) map[string]render.VirtualCluster {
	out := map[string]render.VirtualCluster{}
	for i := range config.VirtualClusters {
		v := &config.VirtualClusters[i]
		cells, pinned := map[string]int{}, map[string]string{}
		roots := virtual[v.Name]
		for _, root := range roots {
			cells[root.LeafCellType] += leaves(&root)
		}
		// The pinned cells come last, in the order of their names.
		for i, id := range slices.Sorted(slices.Values(v.Pinned)) {
			if at := len(roots) - len(v.Pinned) + i; at >= 0 {
				pinned[id] = roots[at].LeafCellType
			}
		}
		out[v.Name] = render.VirtualCluster{Cells: cells, Pinned: v.Pinned, PinnedTypes: pinned,
			PerUser: v.Quota.PerUser, PerGroup: v.Quota.PerGroup, Users: v.Quota.Users, Groups: v.Quota.Groups}
	}
	return out
}

func leaves(c *cell.CellStatus) int {
	if len(c.CellChildren) == 0 {
		return 1
	}
	n := 0
	for i := range c.CellChildren {
		n += leaves(&c.CellChildren[i])
	}
	return n
}

// machinesByLeaf returns the number of cells of each node, by the type of GPU or CPU cell and by the name of the node.
func machinesByLeaf(roots []cell.CellStatus) map[string]map[string]int {
	out := map[string]map[string]int{}
	var walk func(c *cell.CellStatus, gpu string)
	walk = func(c *cell.CellStatus, gpu string) {
		if !c.IsNodeLevel {
			for i := range c.CellChildren {
				walk(&c.CellChildren[i], gpu)
			}
			return
		}
		if out[gpu] == nil {
			out[gpu] = map[string]int{}
		}
		out[gpu][c.CellAddress[strings.LastIndex(c.CellAddress, "/")+1:]] = leaves(c)
	}
	for i := range roots {
		walk(&roots[i], roots[i].LeafCellType)
	}
	return out
}

// shares returns the share of a machine that goes with one GPU, by the type of GPU. It is the share on the smallest machine, without the platform's
// part. For machines without GPUs, it is the size of a CPU cell. A share is never 0, because 0 means unknown.
func shares(nodes []corev1.Node, machines map[string]map[string]int, processors []string, milliCPU, memoryMB int) map[string]render.SKU {
	out := map[string]render.SKU{}
	for leaf, names := range machines {
		share := render.SKU{GPU: 1, MilliCPU: math.MaxInt, MemoryMB: math.MaxInt, NoRDMA: true}
		cpu := slices.Contains(processors, leaf)
		if cpu {
			share.GPU = 0
		}
		for i := range nodes {
			cells, has := names[nodes[i].Name], nodes[i].Status.Allocatable
			if cells == 0 || has.Cpu().IsZero() || has.Memory().IsZero() {
				continue // its kubelet hasn't reported its resources yet
			}
			share.PerNode = max(share.PerNode, cells)
			share.NoRDMA = share.NoRDMA && mostOf(nodes[i:i+1], nil, render.ResourceRDMA) == 0
			parts := cells
			if cpu {
				// Processors that aren't cells also keep their part of the memory.
				parts = max(cells, int(nodes[i].Status.Capacity.Cpu().Value()))
			}
			share.MilliCPU = min(share.MilliCPU, max(1, (int(has.Cpu().MilliValue())-milliCPU)/cells))
			share.MemoryMB = min(share.MemoryMB, max(1, (int(has.Memory().Value()>>20)-memoryMB)/parts))
		}
		if share.MilliCPU == math.MaxInt {
			continue
		}
		if cpu {
			share.MilliCPU = min(share.MilliCPU, wholeProcessor) // the remaining part is for the platform
		}
		out[leaf] = share
	}
	return out
}

// wholeProcessor is one processor, in thousandths.
const wholeProcessor = 1000
