package machine

import (
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/openpai/paictl/pkg/job/v1"
)

// head is a status without its tasks.
type head struct {
	Status v1.FrameworkStatus
	Roles  []v1.TaskRoleStatus
}

func (s *step) header() head {
	h := head{Status: *s.status}
	h.Status.AttemptStatus.TaskRoleStatuses = nil
	h.Status.RetryPolicyStatus.RetryDelaySec = clone(s.status.RetryPolicyStatus.RetryDelaySec)
	h.Status.AvoidedNodes = append([]v1.AvoidedNode(nil), s.status.AvoidedNodes...)
	for _, r := range s.status.AttemptStatus.TaskRoleStatuses {
		one := *r
		one.TaskStatuses = nil
		h.Roles = append(h.Roles, one)
	}
	return h
}

func (s *step) differs(before head) bool {
	return !equality.Semantic.DeepEqual(before, s.header())
}

func clone[T any](p *T) *T {
	if p == nil {
		return nil
	}
	v := *p
	return &v
}

func itoa(n int32) string { return strconv.Itoa(int(n)) }

func ranFor(from, to *metav1.Time) time.Duration {
	if from == nil || to == nil {
		return 0
	}
	return to.Sub(from.Time)
}

func earliest(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
