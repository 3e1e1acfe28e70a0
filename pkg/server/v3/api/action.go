package api

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	actionsv1 "github.com/openpai/paictl/pkg/alerthandler/v1"
)

// Action is a request to stop a job, or to change a machine or a GPU, and its result. pai-alert-handler carries it out.
type Action struct {
	Name      string              `json:"name"`
	Operation actionsv1.Operation `json:"operation"`
	// Job is OWNER/NAME.
	Job     string              `json:"job,omitempty"`
	Machine string              `json:"machine,omitempty"`
	GPU     *int32              `json:"gpu,omitempty"`
	By      actionsv1.Requester `json:"by"`
	Reason  string              `json:"reason"`
	DryRun  bool                `json:"dryRun,omitempty"`
	// GraceSeconds is the time between the notice to affected people and the operation.
	GraceSeconds int64     `json:"graceSeconds,omitempty"`
	Created      time.Time `json:"created"`
	// NotAfter is when a request that hasn't begun expires.
	NotAfter time.Time `json:"notAfter"`
	// Canceled explains why the request was withdrawn, and by whom.
	Canceled string `json:"canceled,omitempty"`
	// Phase is New, Pending, Noticed, Acting, Succeeded, Failed, Refused, Expired or Canceled. The last five are final.
	Phase string `json:"phase"`
	// Message is the result, or the reason for waiting or refusing.
	Message string `json:"message,omitempty"`
	// Noticed is the time of the notice to affected people, Acts the end of the grace period.
	Noticed *time.Time `json:"noticed,omitempty"`
	Acts    *time.Time `json:"acts,omitempty"`
	Started *time.Time `json:"started,omitempty"`
	Ended   *time.Time `json:"ended,omitempty"`
	// Results are the results of the parts of the operation, such as the pods of a drain. Lists leave them out.
	Results []actionsv1.Result `json:"results,omitempty"`
}

// ActionOf returns the action of an object.
func ActionOf(a *actionsv1.Action) *Action {
	out := &Action{Name: a.Name, Operation: a.Spec.Do, By: a.Spec.By, Reason: a.Spec.Reason, DryRun: a.Spec.DryRun, GraceSeconds: a.Spec.GraceSeconds,
		Created: a.CreationTimestamp.UTC(), NotAfter: a.Spec.NotAfter.UTC(), Canceled: a.Spec.Canceled, Phase: a.Status.Phase.String(), Message: a.Status.Message,
		Noticed: moment(a.Status.NoticeTime), Acts: moment(a.Status.ActTime), Started: moment(a.Status.StartTime), Ended: moment(a.Status.EndTime), Results: a.Status.Results}
	if j := a.Spec.Job; j != nil {
		out.Job = j.Name
	}
	if m := a.Spec.Machine; m != nil {
		out.Machine, out.GPU = m.Name, m.GPU
	}
	return out
}

func moment(t *metav1.Time) *time.Time {
	if t == nil {
		return nil
	}
	at := t.UTC()
	return &at
}

// Final reports whether the phase is the last one.
func (a *Action) Final() bool { return actionsv1.Phase(a.Phase).Final() }

// Target names the target for people: a job, a machine, or the GPU that is reset.
func (a *Action) Target() string {
	s := actionsv1.ActionSpec{Do: a.Operation}
	switch {
	case a.Job != "":
		s.Job = &actionsv1.Job{Name: a.Job}
	case a.Machine != "":
		s.Machine = &actionsv1.Machine{Name: a.Machine, GPU: a.GPU}
	}
	return s.Target()
}

// Actions are actions, the latest first.
type Actions struct {
	Items []Action `json:"items"`
	// Next is the cursor of the following page, or "".
	Next string `json:"next,omitempty"`
}

// NewAction requests an operation.
type NewAction struct {
	Operation actionsv1.Operation `json:"operation"`
	// Job is OWNER/NAME, for stop-job and requeue-job. All other operations need Machine, and reset-gpu also GPU.
	Job     string `json:"job,omitempty"`
	Machine string `json:"machine,omitempty"`
	GPU     *int32 `json:"gpu,omitempty"`
	// Reason is one sentence that affected people read.
	Reason string `json:"reason"`
	// GraceSeconds is the time between the notice to affected people and the operation, at most 7 days.
	GraceSeconds int64 `json:"graceSeconds,omitempty"`
	// NotAfter is when the request expires if it hasn't begun: an hour after the grace period by default, and 7 days after it at most.
	NotAfter *time.Time `json:"notAfter,omitempty"`
	// DryRun checks the request and reports what would be done, without doing it.
	DryRun bool `json:"dryRun,omitempty"`
}

// Cancellation withdraws an action.
type Cancellation struct {
	Reason string `json:"reason"`
}
