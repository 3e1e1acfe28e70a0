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

	"github.com/openpai/paictl/pkg/cluster/nodelabels"
	"github.com/openpai/paictl/pkg/cluster/shell"
	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/config/store"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/services"
	"github.com/openpai/paictl/pkg/services/catalogue"
	"github.com/openpai/paictl/pkg/ui/plural"
)

func configurationChecks() []*Check {
	return []*Check{
		{
			ID: "folder-valid", Group: "configuration", Title: "The folder's configuration can be used", Needs: Folder,
			Examines: "the four files of the folder, by the rules of config validate",
			Run:      folderValid,
		},
		{
			ID: "configuration-pushed", Group: "configuration", Title: "The folder matches the cluster's configuration", Needs: Folder | API,
			Examines: "the differences of the four files of the folder from the cluster's copy, from which services are started; secrets aren't compared",
			Run:      configurationPushed,
		},
		{
			ID: "same-cluster", Group: "configuration", Title: "Folder and kubeconfig belong to the same cluster", Needs: Folder | API,
			Examines: "the cluster-id of both, and whether any node of the cluster is a machine of the folder",
			Run:      sameCluster,
		},
		{
			ID: "nodes-listed", Group: "configuration", Title: "Nodes are the layout's machines", Needs: Folder | API,
			Examines: "machines of layout.yaml that are not nodes, and nodes that are not in the layout",
			Run:      nodesListed,
		},
		{
			ID: "node-labels", Group: "configuration", Title: "Nodes have the layout's labels and taints", Needs: Folder | API,
			Examines: "labels and taints of each node that paictl has set or should set",
			Run:      nodeLabels,
		},
		{
			ID: "configuration-valid", Group: "configuration", Title: "The cluster's configuration can be used", Needs: API | Pushed,
			Examines: "the cluster's copy of the four files, by the rules of config validate",
			Run:      configurationValid,
		},
	}
}

func folderValid(_ context.Context, c *Cluster) (out []Finding, _ error) {
	for _, m := range c.Mistakes {
		out = append(out, problem(m.Field, m.Remedy, "%s", m.Message).seen(fmt.Sprintf("%s:%d:%d", m.File, m.Line, m.Column)))
	}
	return out, nil
}

// differing returns the revision of the configuration in the cluster, and the names of the folder's files that differ from this revision.
func (c *Cluster) differing(ctx context.Context) (store.Revision, []string, error) {
	cm, err := c.Kube.Client.CoreV1().ConfigMaps(kube.SystemNamespace).Get(ctx, store.ConfigMapName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return store.Revision{}, nil, store.ErrNone
	}
	if err != nil {
		return store.Revision{}, nil, fmt.Errorf("read the cluster's copy: %w", err)
	}
	text, err := json.Marshal(cm)
	if err != nil {
		return store.Revision{}, nil, err
	}
	files, err := config.ReadFiles(c.Dir)
	if err != nil {
		return store.Revision{}, nil, err
	}
	s := store.New(nil) // the cluster has already responded
	s.SecretPaths = catalogue.SecretPaths
	return s.Differing(text, c.Dir, files)
}

func configurationPushed(ctx context.Context, c *Cluster) ([]Finding, error) {
	r, files, err := c.differing(ctx)
	if errors.Is(err, store.ErrNone) {
		return skip("no configuration was pushed to the cluster"), nil
	}
	if err != nil {
		return nil, err
	}
	if r.ClusterID != "" && r.ClusterID != c.Config.Services.Cluster.Common.ClusterID {
		return skip("the cluster's copy belongs to another cluster: see same-cluster"), nil
	}
	if len(files) == 0 {
		return nil, nil
	}
	dir := shell.Word(c.Dir)
	return []Finding{problem("", fmt.Sprintf("see the difference: paictl config diff -p %s; to use the folder: paictl config push -p %s, then paictl service start; to get the cluster's copy: paictl config pull -o DIR", dir, dir),
		"%s differs from revision %d of the cluster: services are started from the cluster's copy", strings.Join(files, ", "), r.Number)}, nil
}

func sameCluster(ctx context.Context, c *Cluster) (out []Finding, _ error) {
	id := c.Config.Services.Cluster.Common.ClusterID
	r, err := store.New(c.Kube.Client).Current(ctx)
	switch {
	case errors.Is(err, store.ErrNone):
	case err != nil:
		return nil, err
	case r.ClusterID != "" && r.ClusterID != id:
		out = append(out, problem("", "choose the cluster with --kubeconfig and --context, or the folder with -p", "the cluster of context %s has the configuration of %s, but %s is that of %s", c.Kube.Context, r.ClusterID, c.Dir, id))
	}
	nodes, err := c.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	if len(nodes) > 0 && c.foreign(nodes) {
		out = append(out, problem("", "choose the cluster with --kubeconfig and --context, or the folder with -p", "no node of the cluster of context %s is a machine of %s: they belong to different clusters", c.Kube.Context, c.Dir))
	}
	return out, nil
}

// foreign reports whether no node of the cluster is a machine of the folder.
func (c *Cluster) foreign(nodes []corev1.Node) bool {
	return !slices.ContainsFunc(nodes, func(n corev1.Node) bool { return c.listed(n.Name) })
}

func nodesListed(ctx context.Context, c *Cluster) (out []Finding, _ error) {
	nodes, err := c.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	if c.foreign(nodes) {
		return skip("this is another cluster: see same-cluster"), nil
	}
	for _, m := range c.Config.Layout.MachineList {
		if slices.ContainsFunc(nodes, func(n corev1.Node) bool { return n.Name == m.Hostname }) {
			continue
		}
		remedy := fmt.Sprintf("paictl cluster up adds it; paictl node remove %s removes it from the layout", m.Hostname)
		if c.Spec == nil {
			remedy = "join it with the tools that installed Kubernetes, or remove it from layout.yaml"
		}
		out = append(out, problem(m.Hostname, remedy, "a machine of layout.yaml is not a node of the cluster"))
	}
	for i := range nodes {
		n := nodes[i].Name
		if c.listed(n) {
			continue
		}
		remedy := fmt.Sprintf("to keep it: paictl node add %s=ADDRESS; to remove it: list it in layout.yaml, then run paictl node remove %s", n, n)
		if c.Spec == nil {
			remedy = "add it to layout.yaml: paictl config generate --from-kubeconfig reads the nodes"
		}
		out = append(out, warning(n, remedy, "a node of the cluster is not a machine of layout.yaml: it gets no roles, labels or checks of paictl"))
	}
	return out, nil
}

func nodeLabels(ctx context.Context, c *Cluster) (out []Finding, _ error) {
	nodes, err := c.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	copied, err := c.Pushed(ctx)
	if err != nil {
		return nil, err
	}
	if c.Spec == nil {
		started := false
		if copied != nil {
			all, err := c.Services(ctx)
			if err != nil {
				return nil, err
			}
			started = slices.ContainsFunc(all, func(s services.Status) bool { return s.Revision > 0 })
		}
		if !started {
			return skip("no service was started yet: the first start sets labels"), nil
		}
	}
	for _, m := range c.Config.Layout.MachineList {
		at := slices.IndexFunc(nodes, func(n corev1.Node) bool { return n.Name == m.Hostname })
		if at < 0 {
			continue
		}
		have := nodelabels.Of(&nodes[at])
		d := nodelabels.Compare(c.Config.LabelsOf(m), c.Config.TaintsOf(m), have)
		remedy := "paictl cluster up --limit " + m.Hostname + " sets them"
		if c.Spec == nil {
			d = nodelabels.CompareLabels(c.Config.LabelsOf(m), have)
			remedy = "paictl service start sets them"
		}
		if text := labelDifference(d); text != "" {
			out = append(out, problem(m.Hostname, remedy, "the node differs from layout.yaml: %s", text))
		}
	}
	return out, nil
}

func configurationValid(ctx context.Context, c *Cluster) ([]Finding, error) {
	copied, err := c.Pushed(ctx)
	if err != nil {
		return nil, err
	}
	parsed, err := config.Parse("", copied.Files)
	if err != nil {
		return []Finding{problem("", "push a folder that passes: paictl config validate -p DIR, then paictl config push -p DIR", "the cluster's copy can't be read").seen(firstLine(err.Error()))}, nil
	}
	found := config.Validate(parsed, catalogue.Check)
	if errs := found.Errors(); len(errs) > 0 {
		return []Finding{problem("", "paictl config validate -p DIR lists them; correct them there and push", "the cluster's copy has %s, the first: %s", plural.Of(len(errs), "mistake"), firstLine(errs[0].Message))}, nil
	}
	return nil, nil
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
