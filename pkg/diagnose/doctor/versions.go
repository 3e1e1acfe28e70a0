package doctor

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/openpai/paictl/pkg/diagnose/checks"
	"github.com/openpai/paictl/pkg/ui/plural"
)

func versionSkew(ctx context.Context, c *Cluster) (out []Finding, _ error) {
	nodes, err := c.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	info, err := c.Kube.Client.Discovery().ServerVersion()
	if err != nil {
		return nil, fmt.Errorf("ask for the API server's version: %w", err)
	}
	if _, err := version.ParseGeneric(info.GitVersion); err != nil {
		return nil, fmt.Errorf("read the API server's version: %w", err)
	}
	kubelets, runtimes := map[string][]string{}, map[string][]string{}
	for i := range nodes {
		n := &nodes[i]
		text := n.Status.NodeInfo.KubeletVersion
		kubelets[text] = append(kubelets[text], n.Name)
		runtimes[n.Status.NodeInfo.ContainerRuntimeVersion] = append(runtimes[n.Status.NodeInfo.ContainerRuntimeVersion], n.Name)
		if f := checks.Kubelet(n.Name, text, info.GitVersion); f != nil {
			out = append(out, found(*f))
		}
	}
	if c.Spec == nil {
		return out, nil // the cluster's administrator decides when each node is upgraded
	}
	for what, by := range map[string]map[string][]string{"kubelets": kubelets, "container runtimes": runtimes} {
		if f := mixed(what, by, "paictl cluster up installs the same version on all machines"); f != nil {
			out = append(out, *f)
		}
	}
	slices.SortStableFunc(out, func(a, b Finding) int { return strings.Compare(a.Message, b.Message) })
	return out, nil
}

// mixed returns a finding if objects have different versions. The map by lists the objects of each version.
func mixed(what string, by map[string][]string, remedy string) *Finding {
	delete(by, "")
	if len(by) < 2 {
		return nil
	}
	var parts []string
	for _, v := range sortedKeys(by) {
		parts = append(parts, v+" on "+some(by[v]))
	}
	f := warning("", remedy, "%s are of %s: %s", what, plural.Of(len(by), "version"), strings.Join(parts, "; "))
	return &f
}

// some returns up to five names. For more names, it returns four names and the number of the remaining names.
func some(names []string) string {
	slices.Sort(names)
	if len(names) > 5 {
		return strings.Join(names[:4], ", ") + " and " + strconv.Itoa(len(names)-4) + " more"
	}
	return strings.Join(names, ", ")
}

func configuredVersion(ctx context.Context, c *Cluster) (out []Finding, _ error) {
	want := c.Config.Kubernetes.Kubernetes.Version
	info, err := c.Kube.Client.Discovery().ServerVersion()
	if err != nil {
		return nil, fmt.Errorf("ask for the API server's version: %w", err)
	}
	if info.GitVersion != want {
		out = append(out, warning("", "paictl cluster plan shows what would be changed; paictl cluster up changes it", "the API server is %s, but the configuration says %s", info.GitVersion, want))
	}
	nodes, err := c.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	for i := range nodes {
		if have := nodes[i].Status.NodeInfo.KubeletVersion; have != "" && have != want && c.listed(nodes[i].Name) {
			out = append(out, warning(nodes[i].Name, "paictl cluster up --limit "+nodes[i].Name, "its kubelet is %s, but the configuration says %s", have, want))
		}
	}
	return out, nil
}
