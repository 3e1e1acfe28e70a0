package services

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/services/catalogue"
)

// LoadPlaced loads the configuration and adapts it to the cluster. The services' volumes remain on their current machines. Prometheus doesn't verify
// kubelets before the API servers do.
func (p *Platform) LoadPlaced(ctx context.Context) (*Desired, error) {
	d, err := p.Load(ctx)
	if err != nil {
		return nil, err
	}
	if err := p.settleKubelets(ctx, d); err != nil {
		return nil, err
	}
	volumes := d.Catalogue.LocalVolumes()
	if len(volumes) == 0 {
		return d, nil
	}
	at, err := p.readPlaces(ctx, volumes)
	if err != nil {
		return nil, err
	}
	d.Catalogue.Place(func(v catalogue.LocalVolume) string {
		if pv := at.volume(v); pv != nil {
			return nodeOf(pv)
		}
		return at.folder(v)
	})
	return d, nil
}

// places holds the objects that show where the services' data is stored.
type places struct {
	pvs    []corev1.PersistentVolume
	claims []corev1.PersistentVolumeClaim
	jobs   []batchv1.Job // the Jobs that created folders
}

func (p *Platform) readPlaces(ctx context.Context, volumes []catalogue.LocalVolume) (*places, error) {
	var out places
	err := each([]func() error{
		func() error {
			pvs, err := p.Client.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{})
			if err != nil {
				return fmt.Errorf("list the volumes: %w", err)
			}
			out.pvs = pvs.Items
			return nil
		},
		func() error {
			var spaces []string
			for _, v := range volumes {
				if slices.Contains(spaces, v.Namespace) {
					continue
				}
				spaces = append(spaces, v.Namespace)
				claims, err := p.Client.CoreV1().PersistentVolumeClaims(v.Namespace).List(ctx, metav1.ListOptions{})
				if err != nil {
					return fmt.Errorf("list the claims of %s: %w", v.Namespace, err)
				}
				out.claims = append(out.claims, claims.Items...)
			}
			return nil
		},
		func() error {
			jobs, err := p.Client.BatchV1().Jobs(kube.SystemNamespace).List(ctx, metav1.ListOptions{LabelSelector: labelVolume})
			if err != nil {
				return fmt.Errorf("list the jobs that made folders: %w", err)
			}
			out.jobs = jobs.Items
			return nil
		},
	}, defaultParallel, func(ask func() error) error { return ask() })
	return &out, err
}

// volume returns the local PersistentVolume with the data of a claim, or nil. This is the volume that the claim is bound to. If the claim isn't
// bound, volume returns a volume that paictl created for the claim. If several such volumes exist, volume prefers volumes that were in use, and then
// the oldest volume.
func (at *places) volume(v catalogue.LocalVolume) *corev1.PersistentVolume {
	bound := ""
	for i := range at.claims {
		if c := &at.claims[i]; c.Namespace == v.Namespace && c.Name == v.Claim {
			bound = c.Spec.VolumeName
		}
	}
	var best *corev1.PersistentVolume
	for i := range at.pvs {
		pv := &at.pvs[i]
		if pv.Spec.Local == nil || pv.DeletionTimestamp != nil || nodeOf(pv) == "" {
			continue
		}
		if bound != "" {
			if pv.Name == bound {
				return pv
			}
			continue
		}
		ref := pv.Spec.ClaimRef
		ours := pv.Labels[labelService] == v.Service && pv.Labels[labelPartOf] == manager
		if ours && ref != nil && ref.Namespace == v.Namespace && ref.Name == v.Claim && (best == nil || older(pv, best) < 0) {
			best = pv
		}
	}
	return best
}

// older compares volumes. Volumes that were in use come first, and older volumes come before newer volumes.
func older(a, b *corev1.PersistentVolume) int {
	used := func(pv *corev1.PersistentVolume) int {
		if pv.Status.Phase == corev1.VolumeBound || pv.Status.Phase == corev1.VolumeReleased {
			return 0
		}
		return 1
	}
	return cmp.Or(used(a)-used(b), a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
}

// folder returns the machine on which a Job created a volume's folder, or "". Only machines that may run the volume's service count. If a user
// deleted the volume, the new volume must use the same folder. If several such Jobs exist, folder uses the last Job.
func (at *places) folder(v catalogue.LocalVolume) string {
	var last *batchv1.Job
	for i := range at.jobs {
		j := &at.jobs[i]
		if ended, err := jobEnded(j); !ended || err != nil || j.Labels[labelService] != v.Service || !makes(j, v.Path) || !slices.Contains(v.Machines, folderNode(j)) {
			continue
		}
		if last == nil || cmp.Or(j.CreationTimestamp.Compare(last.CreationTimestamp.Time), strings.Compare(j.Name, last.Name)) > 0 {
			last = j
		}
	}
	if last == nil {
		return ""
	}
	return folderNode(last)
}

func folderNode(j *batchv1.Job) string {
	return j.Spec.Template.Spec.NodeSelector[corev1.LabelHostname]
}

func makes(j *batchv1.Job, path string) bool {
	return slices.ContainsFunc(j.Spec.Template.Spec.Containers, func(c corev1.Container) bool {
		return !slices.Contains(c.Args, "remove") && slices.Contains(c.Args, path)
	})
}

// reachable returns an error if a chosen service stores data on a machine that can't run its pods. With a new volume on another machine, the service
// would start without its data.
func (r *run) reachable(chosen []*catalogue.Service) error {
	var lost []string
	remedy := ""
	for _, v := range r.desired.Catalogue.LocalVolumes() {
		if slices.Contains(v.Machines, v.Node) || !slices.ContainsFunc(chosen, func(s *catalogue.Service) bool { return s.Name == v.Service }) {
			continue
		}
		why, back := "which is no longer in the layout", "put "+v.Node+" back (paictl node add), and push the layout"
		for _, m := range r.desired.Config.Layout.MachineList {
			if m.Hostname == v.Node {
				why, back = "where its placement allows no pods", "give "+v.Node+" a role of its placement again, and push the layout"
			}
		}
		lost = append(lost, fmt.Sprintf("%s has its data in %s on %s, %s", v.Service, v.Path, v.Node, why))
		if remedy == "" {
			remedy = fmt.Sprintf("%s; to move the data to another machine, see \"Moving data\" in docs/storage.md; to delete it: paictl service delete -n %s, or, if %s is gone permanently, kubectl -n %s delete pvc %s and kubectl delete pv -l %s=%s",
				back, v.Service, v.Node, v.Namespace, v.Claim, labelService, v.Service)
		}
	}
	if len(lost) > 0 {
		return hint.Errorf(remedy, "%s; nothing was started, because on another machine it would start without that data", strings.Join(lost, "; "))
	}
	return nil
}
