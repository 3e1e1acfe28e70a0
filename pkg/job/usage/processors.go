package usage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/ui/plural"
)

// use is how much CPU and memory one task uses. An unknown value is nil.
type use struct {
	cpu    *float64
	memory *int64
}

// errUnmeasured is the error for a machine whose measurements are missing or can't be read by the caller.
var errUnmeasured = errors.New("no log-manager that measures them answers there, and only an operator's kubeconfig may ask kubelets (nodes/proxy)")

// processors measures the CPU and memory usage of tasks. The results are by the UIDs of the tasks' pods.
func processors(ctx context.Context, c *job.Client, targets []*job.Target) (measured map[string]use, problems []error) {
	nodes := map[string][]*job.Target{}
	for _, t := range targets {
		nodes[t.Node] = append(nodes[t.Node], t)
	}
	measured = map[string]use{}
	var unmeasured []string
	var mu sync.Mutex
	g, asking := errgroup.WithContext(ctx)
	g.SetLimit(parallel)
	for node, here := range nodes {
		g.Go(func() error {
			found, err := onMachine(asking, c, node, here)
			mu.Lock()
			defer mu.Unlock()
			for uid, u := range found {
				measured[uid] = u
			}
			switch {
			case errors.Is(err, errUnmeasured):
				unmeasured = append(unmeasured, node)
			case err != nil:
				problems = append(problems, err)
			}
			return nil
		})
	}
	_ = g.Wait() // each goroutine keeps its own error
	if len(unmeasured) > 0 {
		slices.Sort(unmeasured)
		problems = append(problems, fmt.Errorf("processors and memory on %s are not shown: %w; an operator can check with: paictl service status", listed(unmeasured), errUnmeasured))
	}
	return measured, problems
}

// listed joins the names of machines. If there are more than three, it returns the first three names and the number of other machines.
func listed(nodes []string) string {
	const few = 3
	if len(nodes) <= few {
		return strings.Join(nodes, ", ")
	}
	return strings.Join(nodes[:few], ", ") + " and " + plural.Of(len(nodes)-few, "more machine")
}

// onMachine measures the tasks on a machine. It queries log-manager first. For containers that log-manager doesn't report, it queries the
// kubelet: that is, for container runtimes that log-manager doesn't support, or for all containers if log-manager doesn't run.
func onMachine(ctx context.Context, c *job.Client, node string, here []*job.Target) (map[string]use, error) {
	found, err := byAgent(ctx, c, node, here)
	if err == nil && len(found) == len(here) {
		return found, nil
	}
	more, kubelet := byKubelet(ctx, c, node, here)
	for uid, u := range more {
		if _, ok := found[uid]; !ok {
			found[uid] = u
		}
	}
	none := apierrors.IsNotFound(err) || errors.Is(err, job.ErrNoController)
	switch {
	case kubelet == nil:
		return found, nil
	case apierrors.IsForbidden(kubelet) && none:
		return found, errUnmeasured
	case apierrors.IsForbidden(kubelet) && err != nil:
		return found, fmt.Errorf("read the use of processors and memory on %s: %w", node, err)
	case apierrors.IsForbidden(kubelet):
		return found, fmt.Errorf("log-manager on %s finds the containers of only %d of %s", node, len(found), plural.Of(len(here), "task"))
	}
	return found, fmt.Errorf("ask the kubelet of %s: %w", node, kubelet)
}

// byAgent queries the log-manager of a machine through the job controller.
func byAgent(ctx context.Context, c *job.Client, node string, here []*job.Target) (map[string]use, error) {
	found := map[string]use{}
	list, err := c.History.Use(ctx, node)
	if err != nil {
		return found, err
	}
	for _, t := range here {
		id := containerID(t)
		for i := range list {
			if u := &list[i]; u.Pod == t.UID && u.Container == id {
				found[t.UID] = use{u.CPU, &u.Memory}
			}
		}
	}
	return found, nil
}

// containerID returns the ID of the task's container in the container runtime, or "" if the container is unknown.
func containerID(t *job.Target) string {
	statuses := t.Kubernetes().Status.ContainerStatuses
	for i := range statuses {
		if s := &statuses[i]; s.Name == t.Container {
			_, id, _ := strings.Cut(s.ContainerID, "://")
			return id
		}
	}
	return ""
}

// summary is the part of a kubelet's /stats/summary that is used here.
type summary struct {
	Pods []struct {
		Ref struct {
			UID string `json:"uid"`
		} `json:"podRef"`
		Containers []struct {
			Name string `json:"name"`
			CPU  struct {
				NanoCores *uint64 `json:"usageNanoCores"`
			} `json:"cpu"`
			Memory struct {
				WorkingSet *int64 `json:"workingSetBytes"`
			} `json:"memory"`
		} `json:"containers"`
	} `json:"pods"`
}

// byKubelet queries the kubelet of a machine through the API server. Only operators can do this, because the required right also allows running
// commands in all pods.
func byKubelet(ctx context.Context, c *job.Client, node string, here []*job.Target) (map[string]use, error) {
	body, err := c.Client.CoreV1().RESTClient().Get().Resource("nodes").Name(node).SubResource("proxy").Suffix("stats/summary").DoRaw(ctx)
	if err != nil {
		return nil, err
	}
	s := &summary{}
	if err := json.Unmarshal(body, s); err != nil {
		return nil, err
	}
	found := map[string]use{}
	for _, p := range s.Pods {
		at := slices.IndexFunc(here, func(t *job.Target) bool { return t.UID == p.Ref.UID })
		if at < 0 {
			continue
		}
		for i := range p.Containers {
			k := &p.Containers[i]
			if k.Name != here[at].Container {
				continue
			}
			u := use{memory: k.Memory.WorkingSet}
			if k.CPU.NanoCores != nil {
				n := float64(*k.CPU.NanoCores) / 1e9
				u.cpu = &n
			}
			found[p.Ref.UID] = u
		}
	}
	return found, nil
}
