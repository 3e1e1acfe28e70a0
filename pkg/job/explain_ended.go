package job

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/job/controller/machine"
	v1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/runtime/report"
)

// ended explains the end of a finished job.
func (e *evidence) ended(w *Why) {
	ran := ""
	if e.Started != nil && e.Completed != nil {
		ran = " after " + Duration(e.Completed.Sub(*e.Started))
	}
	switch Phase(e.State) {
	case Succeeded:
		w.Sentence = "It succeeded" + ran + "."
	case Stopped:
		w.Sentence = "It was stopped on request" + ran + "."
		if e.Started == nil {
			w.Sentence = "It was stopped on request before it had started."
		}
		if a := e.lastAttempt(); a != nil && a.Completion != nil && a.Completion.CompletionStatus != nil {
			if reason, ok := strings.CutPrefix(a.Completion.Diagnostics, machine.ReasonStopped+" "); ok {
				w.Sentence = "It was stopped" + ran + ": " + clip(reason) + "."
			}
		}
		w.Remedy = []string{"run it again: paictl job retry " + w.Job}
		if !e.Live {
			w.Remedy = []string{"write its job file, to run it again: paictl job clone " + w.Job}
		}
	case Deleted:
		e.removed(w)
		return
	default:
		e.failure(w, e.lastAttempt())
		e.retries(w)
	}
	if e.Completed != nil {
		w.fact("ended", e.Completed.Local().Format("2006-01-02 15:04:05")+", "+Duration(e.now.Sub(*e.Completed))+" ago")
	}
}

// removed explains a job whose Framework was deleted before its end.
func (e *evidence) removed(w *Why) {
	w.Sentence = "Its Framework was removed before the job had finished; only the history has it."
	w.Remedy = []string{"write its job file, to run it again: paictl job clone " + w.Job}
	if e.Phrase != api.PhraseGone || e.Completed == nil {
		return
	}
	w.Sentence = "Its Framework was removed without the job controller, before the job had finished: the result of its tasks is unknown."
	w.fact("found missing", e.Completed.Local().Format("2006-01-02 15:04:05")+", "+Duration(e.now.Sub(*e.Completed))+" ago")
	w.fact("happens", "when a Framework or its namespace is removed by force, or the cluster is restored from a backup")
}

// retrying explains a job that failed and will be retried.
func (e *evidence) retrying(w *Why) {
	a := e.lastAttempt()
	e.failure(w, a)
	when := "now"
	if e.RetryAt != nil && e.RetryAt.After(e.now) {
		when = "in " + Duration(e.RetryAt.Sub(e.now))
	}
	id := int32(0)
	if a != nil {
		id = a.ID
	}
	w.Sentence = fmt.Sprintf("Attempt %d failed and the next starts %s: %s", id, when, w.Sentence)
	w.fact("controller", e.Message)
	w.fact("at once", "paictl job retry "+w.Job)
	if e.controllerErr != nil {
		w.fact("but", e.controllerErr.Error())
	}
}

func (e *evidence) lastAttempt() *api.Attempt {
	if len(e.Attempts) == 0 {
		return nil
	}
	return &e.Attempts[0]
}

// failure names the task that failed, and explains its exit code.
func (e *evidence) failure(w *Why, a *api.Attempt) {
	if a == nil || a.Completion == nil || a.Completion.CompletionStatus == nil {
		w.Sentence = "It failed; nothing more is known."
		return
	}
	c := a.Completion
	rule := e.rules.ByCode(int(c.Code))
	reason := strings.TrimRight(rule.Reason, ".")
	if _, told, ok := strings.Cut(c.Diagnostics, ". "); ok && c.Code == machine.CodeDependency {
		reason = strings.TrimRight(told, ".") // this text contains the name of the job
	}
	task := e.culprit(a)
	if rule.Code != int(c.Code) {
		reason = fmt.Sprintf("It ended with code %d, which matches no rule", c.Code)
	}
	w.Sentence = reason
	if task != nil {
		w.Sentence = fmt.Sprintf("%s failed%s%s: %s", TaskName(task.Role, task.Index), on(task.Node), ranFor(task), lowerFirst(reason))
	}
	if rule.Code == int(c.Code) {
		w.Sentence += fmt.Sprintf(" (code %d)", c.Code)
	}
	w.Sentence = sentence(w.Sentence)
	w.Remedy = rule.Solution
	if rule.Code != int(c.Code) {
		w.Remedy = []string{"look at the end of its log: paictl job logs " + w.Job}
	}
	if above := machine.AboveLimit.FindStringSubmatch(c.Diagnostics); c.Code == machine.CodePodCreationPermanent && above != nil {
		aboveLimit(w, above[1], above[2], above[3], c.Code)
	}
	e.failureFacts(w, a, task)
}

// aboveLimit explains the end of a task that requested more than the administrator allows for a task.
func aboveLimit(w *Why, resource, most, asked string, code int32) {
	amount, field := " of "+resource, ""
	switch corev1.ResourceName(resource) {
	case corev1.ResourceEphemeralStorage:
		amount, field = " of disk space", "extraContainerOptions.diskMB"
	case corev1.ResourceMemory:
		field = "resourcePerInstance.memoryMB"
	case corev1.ResourceCPU:
		amount, field = " processors", "resourcePerInstance.cpu"
	}
	w.Sentence = fmt.Sprintf("A task requests %s%s, but this cluster allows at most %s (code %d).", asked, amount, most, code)
	w.Remedy = []string{"an administrator can raise it: jobs.containerDefaults.max in the section cluster-configuration"}
	if field != "" {
		w.Remedy = append([]string{"lower " + field + " in the job file, and submit it again"}, w.Remedy...)
	}
}

func on(node string) string {
	if node == "" {
		return ""
	}
	return " on " + node
}

func ranFor(t *api.TaskAttempt) string {
	if t.Run == nil || t.Completed == nil {
		return ""
	}
	return " after " + Duration(t.Completed.Sub(*t.Run))
}

// lowerFirst changes the first letter of a sentence to lower case, so that the sentence can be part of another. It doesn't change a sentence that
// begins with a name.
func lowerFirst(s string) string {
	if len(s) > 1 && s[1] >= 'a' && s[1] <= 'z' {
		return strings.ToLower(s[:1]) + s[1:]
	}
	return s
}

// culprit returns the task whose end completed an attempt, or nil.
func (e *evidence) culprit(a *api.Attempt) *api.TaskAttempt {
	if t := Culprit(a.Completion, lastTasks(a.Tasks)); t != nil {
		return &t.TaskAttempt
	}
	return nil
}

// failureFacts adds facts from the report of the task.
func (e *evidence) failureFacts(w *Why, a *api.Attempt, task *api.TaskAttempt) {
	r, found := exitReport(task)
	if found {
		w.fact("exit code of the program", fmt.Sprint(r.UserExitCode))
		w.fact("recognised by", clip(r.MatchedUserLog+r.MatchedPlatformLog))
		w.fact("GPU fault", clip(r.GPUFault))
		w.Log = r.UserLog
		if len(w.Log) == 0 {
			w.Log = r.PlatformLog
		}
	} else if d := a.Completion.Diagnostics; d != "" {
		w.fact("diagnostics", clip(d))
	}
	if t := a.Completion.Trigger; t != nil {
		w.fact("cause", ending(t))
	}
	if task != nil && Phase(e.State) == Failed {
		w.fact("log", fmt.Sprintf("paictl job logs %s --role %s --task %d", w.Job, task.Role, task.Index))
	}
}

// ending describes which completion condition was met, in the words of the job file. The status contains FrameworkController's words.
func ending(t *v1.CompletionTrigger) string {
	task := "a task"
	if t.TaskIndex != nil {
		task = TaskName(t.TaskRoleName, *t.TaskIndex)
	}
	switch {
	case strings.HasPrefix(t.Message, "FailedTaskCount "):
		return task + " failed, and the role's completion.minFailedInstances was reached"
	case strings.HasPrefix(t.Message, "SucceededTaskCount "):
		return task + " succeeded, and the role's completion.minSucceededInstances was reached"
	case strings.HasPrefix(t.Message, "CompletedTaskCount "):
		return "all tasks have finished"
	}
	return t.Message
}

// exitReport returns the report that the job runtime wrote into a task's termination message, and whether there is such a report.
func exitReport(t *api.TaskAttempt) (report.Report, bool) {
	if t == nil || t.Completion == nil || t.Completion.Pod == nil {
		return report.Report{}, false
	}
	for _, c := range t.Completion.Pod.Containers {
		if r, ok := report.Decode(c.Message); ok {
			return r, true
		}
	}
	return report.Report{}, false
}

// retries explains why a job isn't retried.
func (e *evidence) retries(w *Why) {
	a := e.lastAttempt()
	if a == nil || a.Completion == nil || a.Completion.CompletionStatus == nil {
		return
	}
	attributes := a.Completion.Type.Attributes
	switch n := e.Retries; {
	case slices.Contains(attributes, v1.Permanent):
		w.fact("retries", fmt.Sprintf("%d: this failure would happen again", n))
	case n == 0:
		w.fact("retries", "none: jobRetryCount of the job file is 0")
	default:
		w.fact("retries", fmt.Sprintf("%d, as many as jobRetryCount allows", n))
	}
}
