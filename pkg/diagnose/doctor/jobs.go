package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openpai/paictl/pkg/cluster/shell"
	v1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/ui/plural"
)

// left is the minimum age of a leftover object. The job of a leftover object no longer exists, or the object is being deleted.
const left = 10 * time.Minute

func jobChecks() []*Check {
	return []*Check{
		{
			ID: "job-pods-left", Group: "jobs", Title: "No pods of deleted jobs are left", Needs: API,
			Examines: "pods in pai-jobs whose job is gone for ten minutes or more",
			Run:      jobPodsLeft,
		},
		{
			ID: "gpu-claims-left", Group: "jobs", Title: "No unused claims hold GPUs", Needs: API,
			Examines: "ResourceClaims of the agent's GPUs that are allocated, and whose pod is gone for ten minutes or more",
			Run:      gpuClaimsLeft,
		},
		{
			ID: "stuck-deletions", Group: "jobs", Title: "No deletion is stuck", Needs: API,
			Examines: "pods, jobs and namespaces whose deletion takes ten minutes longer than their grace period",
			Run:      stuckDeletions,
		},
		{
			ID: "doctor-left", Group: "jobs", Title: "Earlier doctors left nothing", Needs: API,
			Examines: "namespaces and jobs of a doctor that has ended",
			Run:      doctorLeft,
		},
	}
}

func jobPodsLeft(ctx context.Context, c *Cluster) (out []Finding, _ error) {
	// List the pods before the jobs. Otherwise a pod could belong to a job that was submitted after the list of jobs.
	pods, err := c.Kube.Client.CoreV1().Pods(kube.JobNamespace).List(ctx, metav1.ListOptions{LabelSelector: v1.LabelFramework})
	if err != nil {
		return nil, fmt.Errorf("list the pods of jobs: %w", err)
	}
	if len(pods.Items) == 0 {
		return nil, nil
	}
	jobs, err := c.Frameworks(ctx)
	if err != nil {
		return nil, err
	}
	for i := range pods.Items {
		p := &pods.Items[i]
		owner := p.Labels[v1.LabelFramework]
		if p.DeletionTimestamp != nil || c.Now().Sub(p.CreationTimestamp.Time) < left || slices.ContainsFunc(jobs, func(f v1.Framework) bool { return f.Name == owner }) {
			continue
		}
		name, uid := p.Name, p.UID
		out = append(out, warning(name, "kubectl -n "+kube.JobNamespace+" delete pod "+name, "a pod of a deleted job is left on %s and holds its resources", p.Spec.NodeName).
			fixedBy(&Fix{What: "delete the pod " + kube.JobNamespace + "/" + name + ", whose job is gone", do: func(ctx context.Context, c *Cluster) error {
				return gone(c.Kube.Client.CoreV1().Pods(kube.JobNamespace).Delete(ctx, name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}))
			}}))
	}
	return out, nil
}

// gone returns nil for errors that mean that an object was deleted or replaced.
func gone(err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

func gpuClaimsLeft(ctx context.Context, c *Cluster) (out []Finding, _ error) {
	list, err := c.Kube.Client.ResourceV1().ResourceClaims(kube.JobNamespace).List(ctx, metav1.ListOptions{})
	if apierrors.IsNotFound(err) {
		return skip("the cluster has no ResourceClaims"), nil
	}
	if err != nil {
		return nil, fmt.Errorf("list the claims of GPUs: %w", err)
	}
	if len(list.Items) == 0 {
		return nil, nil
	}
	pods, err := c.Kube.Client.CoreV1().Pods(kube.JobNamespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list the pods of jobs: %w", err)
	}
	there := map[types.UID]bool{}
	for i := range pods.Items {
		there[pods.Items[i].UID] = true
	}
	for i := range list.Items {
		claim := &list.Items[i]
		owner := metav1.GetControllerOf(claim)
		if claim.DeletionTimestamp != nil || claim.Status.Allocation == nil || owner == nil || owner.Kind != "Pod" || there[owner.UID] ||
			len(held(claim, there)) > 0 || c.Now().Sub(claim.CreationTimestamp.Time) < left {
			continue
		}
		name, uid := claim.Name, claim.UID
		out = append(out, warning(name, "kubectl -n "+kube.JobNamespace+" delete resourceclaim "+name, "a claim holds %s, but its pod %s is gone", plural.Of(len(claim.Status.Allocation.Devices.Results), "GPU"), owner.Name).
			fixedBy(&Fix{What: "delete the claim " + kube.JobNamespace + "/" + name + ", whose pod is gone", do: func(ctx context.Context, c *Cluster) error {
				return gone(c.Kube.Client.ResourceV1().ResourceClaims(kube.JobNamespace).Delete(ctx, name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}))
			}}))
	}
	return out, nil
}

// held returns the names of the existing pods and other objects that have reserved a claim.
func held(claim *resourceapi.ResourceClaim, there map[types.UID]bool) (out []string) {
	for _, r := range claim.Status.ReservedFor {
		if there[r.UID] || r.Resource != "pods" {
			out = append(out, r.Name)
		}
	}
	return out
}

func stuckDeletions(ctx context.Context, c *Cluster) (out []Finding, _ error) {
	pods, err := c.AllPods(ctx)
	if err != nil {
		return nil, err
	}
	now := c.Now()
	for i := range pods {
		p := &pods[i]
		// DeletionTimestamp already includes the grace period.
		if p.DeletionTimestamp == nil || now.Sub(p.DeletionTimestamp.Time) < left {
			continue
		}
		remedy := "on " + p.Spec.NodeName + ": journalctl -u kubelet | grep " + p.Name + "; a process that hangs in the kernel (a broken driver or file server) ends with a reboot"
		if len(p.Finalizers) > 0 {
			remedy = "the owner of its finalizers (" + strings.Join(p.Finalizers, ", ") + ") must remove it: check whether that program runs"
		}
		out = append(out, problem(p.Namespace+"/"+p.Name, remedy, "the pod on %s should be gone since %s", p.Spec.NodeName, p.DeletionTimestamp.UTC().Format(time.RFC3339)))
	}
	jobs, err := c.Frameworks(ctx)
	if err != nil {
		return nil, err
	}
	for i := range jobs {
		f := &jobs[i]
		if f.DeletionTimestamp != nil && now.Sub(f.DeletionTimestamp.Time) > left {
			out = append(out, problem(f.Labels[v1.LabelUser]+"/"+f.Annotations[v1.AnnotationJobName], "the job controller removes it when its pods have stopped and it is archived: paictl service status -n job-controller, and its log",
				"the job is being deleted since %s", f.DeletionTimestamp.UTC().Format(time.RFC3339)))
		}
	}
	spaces, err := c.Kube.Client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list the namespaces: %w", err)
	}
	for i := range spaces.Items {
		n := &spaces.Items[i]
		if n.DeletionTimestamp == nil || now.Sub(n.DeletionTimestamp.Time) < left {
			continue
		}
		f := problem(n.Name, "kubectl get namespace "+n.Name+" -o yaml shows what is left in it, and which finalizers", "the namespace is being deleted since %s", n.DeletionTimestamp.UTC().Format(time.RFC3339))
		for _, cond := range n.Status.Conditions {
			if cond.Status == "True" && cond.Message != "" {
				f = f.seen(cond.Message)
			}
		}
		out = append(out, f)
	}
	return out, nil
}

func doctorLeft(ctx context.Context, c *Cluster) (out []Finding, _ error) {
	spaces, err := c.Kube.Client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{LabelSelector: labelProbe})
	if err != nil {
		return nil, fmt.Errorf("list the namespaces: %w", err)
	}
	for i := range spaces.Items {
		n := &spaces.Items[i]
		if n.DeletionTimestamp != nil || !strings.HasPrefix(n.Name, probePrefix) || !isAbandoned(n.Annotations[annotationOwner], c.Now().Sub(n.CreationTimestamp.Time)) {
			continue
		}
		name := n.Name
		out = append(out, warning(name, "kubectl delete namespace "+name, "an earlier run of doctor was killed and left its pods").
			fixedBy(&Fix{What: "delete the namespace " + name + " that a killed run of doctor left", do: func(ctx context.Context, c *Cluster) error { return removeNamespace(ctx, c.Kube.Client, name) }}))
	}
	jobs, err := c.Frameworks(ctx)
	if err != nil {
		return nil, err
	}
	for i := range jobs {
		f := jobs[i]
		if f.Labels[v1.LabelUser] != endUser || f.DeletionTimestamp != nil || !isAbandoned(f.Annotations[annotationOwner], c.Now().Sub(f.CreationTimestamp.Time)) {
			continue
		}
		name := f.Annotations[v1.AnnotationJobName]
		out = append(out, warning(endUser+"/"+name, "paictl job delete --user "+endUser+" "+shell.Word(name), "an earlier run of doctor was killed and left a job").
			fixedBy(&Fix{What: "delete the job " + endUser + "/" + name + " that a killed run of doctor left", do: func(ctx context.Context, c *Cluster) error {
				return gone(c.Jobs.Frameworks.Delete(ctx, f.Name, f.UID))
			}}))
	}
	return out, nil
}
