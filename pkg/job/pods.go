package job

import (
	"cmp"
	"context"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/openpai/paictl/pkg/job/v1"
)

// TaskPod is a pod of a task, with the fields that users who see the job may see.
type TaskPod struct {
	Name        string `json:"name"`
	UID         string `json:"uid"`
	Role        string `json:"taskRoleName"`
	Index       int32  `json:"taskIndex"`
	Attempt     int32  `json:"jobAttemptId"`
	TaskAttempt int32  `json:"attemptId"`
	Node        string `json:"node,omitempty"`
	IP          string `json:"ip,omitempty"`
	Phase       string `json:"phase"` // Kubernetes' word: Pending, Running, Succeeded, Failed
	// Reason is why the container isn't running, or has ended, such as ImagePullBackOff or OOMKilled.
	Reason string `json:"reason,omitempty"`
}

// TaskPods returns the existing pods of a job's tasks, in the order of its roles.
func (c *Client) TaskPods(ctx context.Context, j *Job) ([]TaskPod, error) {
	out := []TaskPod{}
	if !j.Live {
		return out, nil
	}
	pods, err := c.Pods(ctx, j)
	if err != nil {
		return nil, err
	}
	order := map[string]int{}
	for i := range pods {
		p := &pods[i]
		index, err := strconv.ParseInt(p.Labels[v1.LabelTaskIndex], 10, 32)
		if err != nil {
			continue // the pod doesn't belong to a task
		}
		t := TaskPod{Name: p.Name, UID: string(p.UID), Role: p.Labels[v1.LabelTaskRole], Index: int32(index), Node: p.Spec.NodeName, IP: p.Status.PodIP, Phase: string(p.Status.Phase),
			Attempt: ordinal(p.Annotations[v1.AnnotationFrameworkAttempt]), TaskAttempt: ordinal(p.Annotations[v1.AnnotationTaskAttempt]), Reason: reasonOf(p)}
		if at := slices.IndexFunc(j.Roles, func(r Role) bool { return r.Object == t.Role }); at >= 0 {
			t.Role, order[j.Roles[at].Name] = j.Roles[at].Name, at
		}
		out = append(out, t)
	}
	slices.SortFunc(out, func(a, b TaskPod) int {
		return cmp.Or(cmp.Compare(order[a.Role], order[b.Role]), cmp.Compare(a.Index, b.Index), cmp.Compare(a.UID, b.UID))
	})
	return out, nil
}

// ordinal parses the number of an attempt. It returns 0 if the text isn't such a number.
func ordinal(text string) int32 {
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n < 0 {
		return 0
	}
	return int32(n)
}

func reasonOf(p *corev1.Pod) string {
	for i := range p.Status.ContainerStatuses {
		switch s := &p.Status.ContainerStatuses[i].State; {
		case s.Waiting != nil && s.Waiting.Reason != "":
			return s.Waiting.Reason
		case s.Terminated != nil && s.Terminated.Reason != "":
			return s.Terminated.Reason
		}
	}
	return p.Status.Reason
}
