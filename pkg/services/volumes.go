package services

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/openpai/paictl/pkg/kube"
)

// The storage chart sets these labels. The labels contain the service that owns a volume, and the volume that an object belongs to.
const (
	labelService = "paictl.openpai.org/service"
	labelVolume  = "paictl.openpai.org/volume"
)

// Volume describes a volume with the data of a service.
type Volume struct {
	Service          string `json:"service"`
	Namespace        string `json:"namespace"`
	Claim            string `json:"claim"`
	Size             string `json:"size,omitempty"`
	PersistentVolume string `json:"persistentVolume,omitempty"`
	// Folder is the folder of a local volume. Node is the machine of a local volume.
	Folder string `json:"folder,omitempty"`
	Node   string `json:"node,omitempty"`
	// Owned means that paictl created the folder for a service. A delete removes only such folders.
	Owned bool `json:"owned,omitempty"`
	// Share is the share of an NFS volume in the form server:/path. The data of the share is kept.
	Share string `json:"share,omitempty"`
	// Dynamic means that the volume's provisioner removes the volume when the claim is deleted.
	Dynamic bool `json:"dynamic,omitempty"`
	// ours means that paictl created the PersistentVolume. Other PersistentVolumes are kept, because a PersistentVolume refers to data.
	ours bool
}

// String returns the objects that a deletion removes or keeps, for the user's confirmation.
func (v Volume) String() string {
	text := fmt.Sprintf("claim %s/%s", v.Namespace, v.Claim)
	if v.Size != "" {
		text += ", " + v.Size
	}
	switch {
	case v.Folder != "" && v.Owned:
		text += fmt.Sprintf(", with the folder %s on %s", v.Folder, v.Node)
	case v.Folder != "":
		text += fmt.Sprintf("; the folder %s on %s stays", v.Folder, v.Node)
	case v.Share != "":
		text += fmt.Sprintf("; the data on %s stays", v.Share)
	case v.Dynamic:
		text += ", with its volume"
	case v.PersistentVolume != "":
		text += fmt.Sprintf("; the data in the volume %s stays", v.PersistentVolume)
	}
	return text
}

func (r *run) volumes(ctx context.Context, targets []*target) (map[string][]Volume, error) {
	spaces := sets.New[string]()
	for _, t := range targets {
		spaces.Insert(t.namespace)
	}
	pvs, err := r.Client.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list the volumes: %w", err)
	}
	var claims []corev1.PersistentVolumeClaim
	for _, ns := range sets.List(spaces) {
		list, err := r.Client.CoreV1().PersistentVolumeClaims(ns).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, fmt.Errorf("list the claims of %s: %w", ns, err)
		}
		claims = append(claims, list.Items...)
	}
	out := map[string][]Volume{}
	for _, t := range targets {
		out[t.name] = volumesOf(t, r.declared(t.name), claims, pvs.Items)
	}
	return out, nil
}

// dataLeft returns the services with remaining volumes or claims of paictl, and the namespaces of these objects. If a service was stopped and then
// removed from the configuration, only its data shows that the service existed.
func (r *run) dataLeft(ctx context.Context) (map[string]string, error) {
	ours := metav1.ListOptions{LabelSelector: labelPartOf + "=" + manager}
	// Read only this namespace. Users can create claims in other namespaces, and these claims must not add services.
	claims, err := r.Client.CoreV1().PersistentVolumeClaims(kube.SystemNamespace).List(ctx, ours)
	if err != nil {
		return nil, fmt.Errorf("list the claims of %s: %w", kube.SystemNamespace, err)
	}
	pvs, err := r.Client.CoreV1().PersistentVolumes().List(ctx, ours)
	if err != nil {
		return nil, fmt.Errorf("list the volumes: %w", err)
	}
	out := map[string]string{}
	for i := range pvs.Items {
		pv := &pvs.Items[i]
		if name := pv.Labels[labelService]; name != "" && pv.Spec.ClaimRef != nil {
			out[name] = pv.Spec.ClaimRef.Namespace
		}
	}
	for i := range claims.Items {
		if name := claims.Items[i].Labels[labelInstance]; name != "" {
			out[name] = claims.Items[i].Namespace
		}
	}
	return out, nil
}

// declared returns the names of a service's claims in the catalogue.
func (r *run) declared(service string) []string {
	if r.desired == nil {
		return nil
	}
	s := r.desired.Catalogue.Get(service)
	if s == nil {
		return nil
	}
	var out []string
	for _, c := range s.Claims {
		out = append(out, c.Name)
	}
	return out
}

func volumesOf(t *target, declared []string, claims []corev1.PersistentVolumeClaim, pvs []corev1.PersistentVolume) []Volume {
	var out []Volume
	for i := range claims {
		c := &claims[i]
		if c.Namespace != t.namespace || !claimedBy(c, t.name) && !slices.Contains(declared, c.Name) {
			continue
		}
		v := Volume{Service: t.name, Namespace: c.Namespace, Claim: c.Name}
		if q, ok := c.Spec.Resources.Requests[corev1.ResourceStorage]; ok {
			v.Size = q.String()
		}
		describeVolume(&v, volumeOf(c, pvs))
		out = append(out, v)
	}
	// The claim may be missing although its folder exists, because of a user or an interrupted delete.
	for i := range pvs {
		pv := &pvs[i]
		ref := pv.Spec.ClaimRef
		if pv.Labels[labelService] != t.name || ref == nil || slices.ContainsFunc(out, func(v Volume) bool { return v.PersistentVolume == pv.Name }) {
			continue
		}
		v := Volume{Service: t.name, Namespace: ref.Namespace, Claim: ref.Name}
		describeVolume(&v, pv)
		out = append(out, v)
	}
	slices.SortFunc(out, func(a, b Volume) int { return strings.Compare(a.Claim, b.Claim) })
	return out
}

// annotationRelease is the annotation that Helm sets on all objects of a release. annotationRelease identifies the claims of third-party charts,
// whose labels aren't known.
const annotationRelease = "meta.helm.sh/release-name"

// claimedBy reports whether a claim's label or annotation contains the service.
func claimedBy(c *corev1.PersistentVolumeClaim, service string) bool {
	return c.Labels[labelInstance] == service || c.Annotations[annotationRelease] == service
}

// volumeOf returns the volume that a claim is bound to. If the claim isn't bound, volumeOf returns a volume that is reserved for the claim. Several
// volumes may be reserved for the claim, because of earlier layouts.
func volumeOf(c *corev1.PersistentVolumeClaim, pvs []corev1.PersistentVolume) *corev1.PersistentVolume {
	at := slices.IndexFunc(pvs, func(pv corev1.PersistentVolume) bool {
		ref := pv.Spec.ClaimRef
		if c.Spec.VolumeName != "" {
			return pv.Name == c.Spec.VolumeName
		}
		return ref != nil && ref.Namespace == c.Namespace && ref.Name == c.Name
	})
	if at < 0 {
		return nil
	}
	return &pvs[at]
}

func describeVolume(v *Volume, pv *corev1.PersistentVolume) {
	if pv == nil {
		return
	}
	v.PersistentVolume, v.ours = pv.Name, pv.Labels[labelPartOf] == manager
	v.Dynamic = pv.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete
	switch {
	case pv.Spec.Local != nil:
		v.Folder, v.Node = pv.Spec.Local.Path, nodeOf(pv)
		v.Owned = pv.Labels[labelService] == v.Service && v.ours
	case pv.Spec.NFS != nil:
		v.Share = pv.Spec.NFS.Server + ":" + pv.Spec.NFS.Path
	}
}

// nodeOf returns the node of a local volume, or "".
func nodeOf(pv *corev1.PersistentVolume) string {
	if pv.Spec.NodeAffinity == nil || pv.Spec.NodeAffinity.Required == nil {
		return ""
	}
	for _, term := range pv.Spec.NodeAffinity.Required.NodeSelectorTerms {
		for _, e := range term.MatchExpressions {
			if e.Key == corev1.LabelHostname && e.Operator == corev1.NodeSelectorOpIn && len(e.Values) == 1 {
				return e.Values[0]
			}
		}
	}
	return ""
}
