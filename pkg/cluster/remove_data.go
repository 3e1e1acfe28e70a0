package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/openpai/paictl/pkg/cluster/engine"
)

// Data describes a volume whose data is stored in a folder of one machine.
type Data struct {
	Host, Volume, Folder string
	// Of is the service that uses the volume, or else the volume's claim as NAMESPACE/NAME, or "".
	Of string
}

func (d Data) String() string {
	of := ""
	if d.Of != "" {
		of = d.Of + ": "
	}
	return fmt.Sprintf("%s%s on %s (volume %s)", of, d.Folder, d.Host, d.Volume)
}

// labelService is the label of volumes that paictl has created for a service.
const labelService = "paictl.openpai.org/service"

// DataOn returns the volumes whose data is on the machines with the given host names or addresses. RemoveNodes doesn't delete this data. DataOn
// changes nothing and emits no events.
func DataOn(ctx context.Context, s *engine.Spec, o engine.Options, names []string) ([]Data, error) {
	nodes, err := Removable(s, names)
	if err != nil {
		return nil, err
	}
	o.DryRun, o.Sink = true, silent{}
	r := engine.NewRun(s, o)
	defer r.Close()
	r.Each(ctx, s.ControlPlane(), r.Dial) // one master that responds is enough
	leader, err := r.FindLeader(ctx, nodes)
	if err != nil {
		return nil, err
	}
	if leader == nil {
		return nil, errors.New("no machine of the control plane that answers is a member of the cluster")
	}
	res, err := r.Read(ctx, leader, "data", "look", s.SelfAPI(leader)+"self get persistentvolumes --request-timeout=30s -o json\n")
	if err != nil {
		return nil, err
	}
	var list corev1.PersistentVolumeList
	if err := json.Unmarshal(res.Stdout, &list); err != nil {
		return nil, fmt.Errorf("read the cluster's volumes: %w", err)
	}
	var out []Data
	for i := range list.Items {
		pv := &list.Items[i]
		n := slices.IndexFunc(nodes, func(n *engine.Node) bool { return liesOn(pv, n.Hostname) })
		if n < 0 {
			continue
		}
		d := Data{Host: nodes[n].Hostname, Volume: pv.Name, Of: userOf(pv)}
		switch {
		case pv.Spec.Local != nil:
			d.Folder = pv.Spec.Local.Path
		case pv.Spec.HostPath != nil:
			d.Folder = pv.Spec.HostPath.Path
		default:
			continue
		}
		out = append(out, d)
	}
	slices.SortFunc(out, func(a, b Data) int { return strings.Compare(a.String(), b.String()) })
	return out, nil
}

func userOf(pv *corev1.PersistentVolume) string {
	if s := pv.Labels[labelService]; s != "" {
		return s
	}
	if c := pv.Spec.ClaimRef; c != nil {
		return c.Namespace + "/" + c.Name
	}
	return ""
}

func liesOn(pv *corev1.PersistentVolume, node string) bool {
	if pv.Spec.NodeAffinity == nil || pv.Spec.NodeAffinity.Required == nil {
		return false
	}
	return slices.ContainsFunc(pv.Spec.NodeAffinity.Required.NodeSelectorTerms, func(t corev1.NodeSelectorTerm) bool {
		return slices.ContainsFunc(t.MatchExpressions, func(e corev1.NodeSelectorRequirement) bool {
			return e.Key == corev1.LabelHostname && e.Operator == corev1.NodeSelectorOpIn && slices.Equal(e.Values, []string{node})
		})
	})
}
