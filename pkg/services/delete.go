package services

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/services/release"
)

// Deletion describes the objects that Delete removes.
type Deletion struct {
	// ClusterID is the text that a user types to confirm the deletion. ClusterID is "" if the cluster stores no configuration.
	ClusterID string
	Services  []string
	Volumes   []Volume
	// Warnings lists reasons against the deletion.
	Warnings []string
}

// deleteWait is how long a delete waits for pods if Options.Wait is 0. A delete must wait, because data in use can't be removed.
const deleteWait = defaultWait

const verbDelete = "delete"

// Delete stops services like Stop, and then removes their data: the claims, the volumes of the claims, and the folders of local volumes. Delete keeps
// the configuration. Delete changes nothing until Options.Confirm returns nil.
func (p *Platform) Delete(ctx context.Context, o Options) error {
	if o.Wait <= 0 {
		o.Wait = deleteWait
	}
	r := p.newRun(verbDelete, o)
	targets, err := r.targets(ctx)
	if err != nil {
		return err
	}
	volumes, err := r.volumes(ctx, targets)
	if err != nil {
		return err
	}
	stale := withoutRelease(targets)
	targets = slices.DeleteFunc(targets, func(t *target) bool { return t.release == nil && len(volumes[t.name]) == 0 })
	stale = slices.DeleteFunc(stale, func(name string) bool { return len(volumes[name]) > 0 })
	if len(targets)+len(stale) == 0 && !o.DryRun {
		r.beginStop(targets)
		return r.nothing(ctx)
	}
	if o.DryRun {
		r.beginStop(targets)
		r.planDelete(targets, volumes)
		return r.finish(ctx)
	}
	if err := r.confirm(ctx, targets, volumes); err != nil { // before the first event, because a live table would overwrite the question
		return err
	}
	if err := r.ensureNamespace(ctx, kube.SystemNamespace); err != nil { // the lock is in this namespace
		return err
	}
	jobs, err := r.folderJobs(ctx, volumes)
	if err != nil {
		return err
	}
	return r.locked(ctx, func(ctx context.Context) error {
		r.beginStop(targets)
		err := r.stopAll(ctx, targets, stale, ActionDeleted, func(ctx context.Context, t *target) error {
			for _, v := range volumes[t.name] {
				if err := r.removeVolume(ctx, t.name, v, jobs[v.PersistentVolume]); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return r.abort(err)
		}
		return r.finish(ctx)
	})
}

func (r *run) confirm(ctx context.Context, targets []*target, volumes map[string][]Volume) error {
	if r.o.Confirm == nil {
		return nil
	}
	d := Deletion{ClusterID: r.clusterID(ctx)}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.early { // reported after the run has begun, when it is too late to ask
		if e.Kind == EventWarning {
			d.Warnings = append(d.Warnings, r.masks.event(e).Message)
		}
	}
	for _, t := range targets {
		d.Services = append(d.Services, t.name)
		d.Volumes = append(d.Volumes, volumes[t.name]...)
	}
	return r.o.Confirm(ctx, d)
}

// clusterID returns the cluster's ID, or "". An invalid configuration also contains the ID.
func (r *run) clusterID(ctx context.Context) string {
	if r.desired != nil {
		return r.desired.Config.Services.Cluster.Common.ClusterID
	}
	if r.Current == nil {
		return ""
	}
	now, _ := r.Current(ctx)
	return now.ClusterID
}

func (r *run) planDelete(targets []*target, volumes map[string][]Volume) {
	for _, t := range targets {
		p := release.Plan{Action: "delete"}
		if t.release != nil {
			p.Changes = append(p.Changes, release.Change{Action: "delete", Object: "Release " + t.namespace + "/" + t.name})
		}
		for _, v := range volumes[t.name] {
			p.Changes = append(p.Changes, release.Change{Action: "delete", Object: "PersistentVolumeClaim " + v.Namespace + "/" + v.Claim, Diff: "- " + v.String() + "\n"})
		}
		r.plan(t.name, p)
	}
}

// removeVolume removes a claim. removeVolume also removes the volume and the folder that paictl created for this claim.
func (r *run) removeVolume(ctx context.Context, service string, v Volume, job *folderJob) error {
	if v.Folder != "" && v.Owned {
		if err := r.removeFolder(ctx, service, v, job); err != nil {
			return err
		}
	}
	claims := r.Client.CoreV1().PersistentVolumeClaims(v.Namespace)
	if err := claims.Delete(ctx, v.Claim, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("remove the claim %s/%s: %w", v.Namespace, v.Claim, err)
	}
	if v.ours && !v.Dynamic {
		err := r.Client.CoreV1().PersistentVolumes().Delete(ctx, v.PersistentVolume, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("remove the volume %s: %w", v.PersistentVolume, err)
		}
	}
	r.tell(service, "delete", v.String())
	return nil
}
