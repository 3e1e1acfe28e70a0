package services

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/runtime/rules"
	"github.com/openpai/paictl/pkg/services/ready"
)

// storageService is the service that creates the folders of local volumes.
const storageService = "storage"

// folderJob is the Job that created a folder. The Job that removes the folder uses the same image, rights and machine.
type folderJob struct {
	namespace string
	template  corev1.PodTemplateSpec
	labels    map[string]string
}

// folderJobs returns the Jobs that created the folders to remove, by volume. folderJobs reads the Jobs from the cluster. If a Job no longer exists,
// folderJobs renders the Job from the chart. folderJobs must run before the storage service is removed.
func (r *run) folderJobs(ctx context.Context, volumes map[string][]Volume) (map[string]*folderJob, error) {
	wanted := map[string]bool{}
	for _, list := range volumes {
		for _, v := range list {
			if v.Owned {
				wanted[v.PersistentVolume] = true
			}
		}
	}
	out := map[string]*folderJob{}
	if len(wanted) == 0 {
		return out, nil
	}
	// Read only this namespace. Users can create Jobs in other namespaces. Such Jobs must not define commands that paictl runs.
	jobs, err := r.Client.BatchV1().Jobs(kube.SystemNamespace).List(ctx, metav1.ListOptions{LabelSelector: labelVolume})
	if err != nil {
		return nil, fmt.Errorf("list the jobs that made folders: %w", err)
	}
	all := append(r.renderedJobs(ctx), jobs.Items...) // those in the cluster override them
	for i := range all {
		if pv := all[i].Labels[labelVolume]; wanted[pv] {
			out[pv] = &folderJob{namespace: all[i].Namespace, template: all[i].Spec.Template, labels: all[i].Labels}
		}
	}
	return out, nil
}

// renderedJobs returns the Jobs in the storage service's chart. renderedJobs returns nil without a configuration, or if the chart can't be rendered.
func (r *run) renderedJobs(ctx context.Context) []batchv1.Job {
	if r.desired == nil {
		return nil
	}
	s := r.desired.Catalogue.Get(storageService)
	if s == nil || s.Chart == nil {
		return nil
	}
	manifest, err := r.Releases.Render(ctx, request(s))
	if err != nil {
		return nil
	}
	all, err := objects(manifest)
	if err != nil {
		return nil
	}
	var out []batchv1.Job
	for _, o := range all {
		var job batchv1.Job
		if o.GetKind() == "Job" && yaml.Unmarshal([]byte(o.text), &job) == nil {
			out = append(out, job)
		}
	}
	return out
}

func (j *folderJob) removal(service string, v Volume) *batchv1.Job {
	limit, retries, seconds := int32(600), int32(2), int64(removalLimit.Seconds())
	template := *j.template.DeepCopy()
	template.Labels = merged(ownLabels(service), map[string]string{labelVolume: v.PersistentVolume})
	template.Spec.RestartPolicy = corev1.RestartPolicyNever
	for i := range template.Spec.Containers {
		c := &template.Spec.Containers[i]
		c.Name = "remove"
		c.Args = append([]string{"remove"}, slices.DeleteFunc(slices.Clone(c.Args), func(a string) bool { return !strings.HasPrefix(a, "--root=") })...)
		c.Args = append(c.Args, v.Folder)
	}
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: "pai-volume-remove-" + v.PersistentVolume, Namespace: j.namespace, Labels: template.Labels},
		Spec: batchv1.JobSpec{
			Template: template, BackoffLimit: &retries, ActiveDeadlineSeconds: &seconds, TTLSecondsAfterFinished: &limit,
		},
	}
}

const removalLimit = 2 * time.Minute

// removeFolder runs a Job on the volume's machine that removes the folder. Then removeFolder deletes this Job and the Job that created the folder, so
// that a later start creates the folder again.
func (r *run) removeFolder(ctx context.Context, service string, v Volume, j *folderJob) error {
	byHand := fmt.Sprintf("remove the folder yourself, on %s: rm -r %s; then remove the volume: kubectl delete pv %s; then run the same command again", v.Node, v.Folder, v.PersistentVolume)
	if j == nil {
		return hint.Errorf(byHand, "there is no Job that could remove the folder %s on %s", v.Folder, v.Node)
	}
	job := j.removal(service, v)
	api := r.Client.BatchV1().Jobs(job.Namespace)
	gone := metav1.DeleteOptions{PropagationPolicy: ptr(metav1.DeletePropagationBackground)}
	if err := r.createAnew(ctx, job, gone); err != nil {
		return fmt.Errorf("remove the folder %s on %s: %w", v.Folder, v.Node, err)
	}
	if err := r.awaitJob(ctx, service, job); err != nil {
		tidy, cancel := context.WithTimeout(context.WithoutCancel(ctx), tidyLimit)
		defer cancel()
		_ = api.Delete(tidy, job.Name, gone) // otherwise its own limits end it
		return hint.Wrap(fmt.Errorf("remove the folder %s on %s: %w", v.Folder, v.Node, err), byHand)
	}
	jobs, err := api.List(ctx, metav1.ListOptions{LabelSelector: labelVolume + "=" + v.PersistentVolume})
	if err != nil {
		return fmt.Errorf("list the jobs of volume %s: %w", v.PersistentVolume, err)
	}
	for i := range jobs.Items {
		if err := api.Delete(ctx, jobs.Items[i].Name, gone); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("remove the job %s: %w", jobs.Items[i].Name, err)
		}
	}
	return nil
}

// tidyLimit is the time limit for the cleanup after a failed or interrupted removal.
const tidyLimit = 5 * time.Second

// createAnew creates a Job. createAnew replaces a Job of an earlier delete, because the folder may have been created again after that delete.
func (r *run) createAnew(ctx context.Context, job *batchv1.Job, gone metav1.DeleteOptions) error {
	api := r.Client.BatchV1().Jobs(job.Namespace)
	_, err := api.Create(ctx, job, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	if err := api.Delete(ctx, job.Name, gone); err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	_, err = api.Create(ctx, job, metav1.CreateOptions{})
	return err
}

// awaitJob waits until a Job has finished, and reports problems of the Job's pods.
func (r *run) awaitJob(ctx context.Context, service string, job *batchv1.Job) error {
	tick := time.NewTicker(pollTermination)
	defer tick.Stop()
	limit, cancel := context.WithTimeout(ctx, removalLimit+10*time.Second)
	defer cancel()
	told := map[string]bool{}
	for {
		have, err := r.Client.BatchV1().Jobs(job.Namespace).Get(limit, job.Name, metav1.GetOptions{})
		if err != nil && limit.Err() == nil {
			return err
		}
		if err == nil {
			if done, err := jobEnded(have); done {
				return err
			}
			r.jobProblems(limit, service, job, told)
		}
		select {
		case <-tick.C:
		case <-limit.Done():
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return fmt.Errorf("the job %s did not end within %s", job.Name, removalLimit)
		}
	}
}

func jobEnded(job *batchv1.Job) (bool, error) {
	for _, c := range job.Status.Conditions {
		if c.Status != corev1.ConditionTrue {
			continue
		}
		switch c.Type {
		case batchv1.JobComplete:
			return true, nil
		case batchv1.JobFailed:
			return true, fmt.Errorf("the job %s failed: %s: %s", job.Name, rules.Words(c.Reason), c.Message)
		}
	}
	return false, nil
}

func (r *run) jobProblems(ctx context.Context, service string, job *batchv1.Job, told map[string]bool) {
	text, err := yaml.Marshal(map[string]any{
		"apiVersion": "batch/v1", "kind": "Job", "metadata": map[string]any{"name": job.Name, "namespace": job.Namespace},
	})
	if err != nil {
		return
	}
	st, err := r.Ready.Check(ctx, job.Namespace, string(text))
	if err == nil && len(st.Problems) > 0 {
		r.progress(service, ready.State{Pods: st.Pods, ReadyPods: st.ReadyPods, Problems: st.Problems}, told)
	}
}
