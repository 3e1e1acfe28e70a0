package notify

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/openpai/paictl/pkg/alerthandler/policy"
	v1 "github.com/openpai/paictl/pkg/alerthandler/v1"
	jobv1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/ui/plural"
)

const (
	// mostDigest limits the number of listed notices in a digest. A digest only counts the remaining notices.
	mostDigest = 100
	// mostText limits the text of a message, in bytes, because Feishu and DingTalk accept 20 KB.
	mostText = 15_000
)

// line converts user text to a single line.
func line(text string) string { return policy.OneLine(text, 500) }

// owner splits the name OWNER/NAME of a job. The owner is "" if the name contains no slash.
func owner(j *v1.Job) (owner, name string) {
	owner, name, ok := strings.Cut(j.Name, "/")
	if !ok {
		return "", j.Name
	}
	return owner, name
}

func at(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }

// subject returns a subject that begins with the name of the cluster, if configured.
func (c *Config) subject(format string, args ...any) string {
	text := fmt.Sprintf(format, args...)
	if c.Cluster != "" {
		text = "[" + c.Cluster + "] " + text
	}
	return policy.OneLine(text, 200)
}

// by returns the requester of an Action, as part of a sentence.
func by(a *v1.Action) string {
	if a.Spec.By.Kind == v1.ByPolicy {
		return "the policy " + line(a.Spec.By.Name)
	}
	return "the administrator " + line(a.Spec.By.Name)
}

func paragraphs(list ...string) string {
	list = slices.DeleteFunc(list, func(p string) bool { return p == "" })
	return strings.Join(list, "\n\n") + "\n"
}

// planned returns the notice that announces an operation. The notice explains how to prevent the operation.
func (c *Config) planned(a *v1.Action, w *World) Notice {
	when := at(w.acts(a))
	if a.Spec.Job == nil {
		return Notice{Subject: c.subject("%s of %s at %s", a.Spec.Do.Verb(), line(a.Spec.Target()), when), Text: paragraphs(
			fmt.Sprintf("The %s of %s is planned for %s.", a.Spec.Do.Verb(), line(a.Spec.Target()), when),
			fmt.Sprintf("Reason: %s\nRequested by: %s", line(a.Spec.Reason), by(a)),
			"To prevent it, cancel it before then: paictl action cancel "+a.Name)}
	}
	keep := ""
	if tag := w.keepTag(a); tag != "" {
		keep = fmt.Sprintf("To keep the job, add the tag %q to it before then.", tag)
	}
	return Notice{Subject: c.subject("job %s will be %s at %s", line(a.Spec.Job.Name), participle(a), when), Text: paragraphs(
		fmt.Sprintf("The job %s will be %s at %s.", line(a.Spec.Job.Name), participle(a), when)+requeueMeans(a),
		w.reasons(a)+"\nRequested by: "+by(a), keep,
		"An administrator can also cancel this: paictl action cancel "+a.Name)}
}

// keepTag returns the tag that exempts a job from the policy of an Action, or "".
func (w *World) keepTag(a *v1.Action) string {
	if a.Spec.By.Kind != v1.ByPolicy {
		return ""
	}
	return line(w.KeepTag(a.Spec.By.Name))
}

// wouldStop returns the notice that a policy would have stopped a job if the policy didn't make dry runs.
func (c *Config) wouldStop(a *v1.Action, w *World) Notice {
	_, name := owner(a.Spec.Job)
	exempt := ""
	if tag := w.keepTag(a); tag != "" {
		exempt = fmt.Sprintf("If the job needs its GPUs nevertheless, add the tag %q to it.", tag)
	}
	return Notice{Subject: c.subject("%s", line(a.Spec.Reason)), Text: paragraphs(
		line(a.Spec.Reason)+".", fmt.Sprintf("The job %s keeps running, because %s doesn't stop jobs yet.", line(a.Spec.Job.Name), by(a)),
		"If you no longer need the job, stop it: paictl job stop "+line(name), exempt)}
}

// stopped returns the notice that a job was stopped.
func (c *Config) stopped(a *v1.Action) Notice {
	_, name := owner(a.Spec.Job)
	return Notice{Subject: c.subject("job %s was stopped", line(a.Spec.Job.Name)), Text: paragraphs(
		fmt.Sprintf("The job %s was stopped at %s.", line(a.Spec.Job.Name), at(a.Status.StartTime.Time)),
		fmt.Sprintf("Reason: %s\nRequested by: %s", line(a.Spec.Reason), by(a)),
		"The page of the job and \"paictl job why "+line(name)+"\" show this reason, too.")}
}

func (c *Config) requeued(a *v1.Action, w *World) Notice {
	_, name := owner(a.Spec.Job)
	return Notice{Subject: c.subject("job %s was requeued", line(a.Spec.Job.Name)), Text: paragraphs(
		fmt.Sprintf("The job %s was requeued at %s.", line(a.Spec.Job.Name), at(a.Status.StartTime.Time))+requeueMeans(a),
		w.reasons(a)+"\nRequested by: "+by(a),
		"\"paictl job why "+line(name)+"\" shows whether it waits or runs.")}
}

// kept returns the notice that a job won't be stopped or requeued.
func (c *Config) kept(a *v1.Action, w *World) Notice {
	target, why := line(a.Spec.Target()), ""
	if stays(a) {
		why = w.reasons(a) + "\nRequested by: " + by(a)
	}
	return Notice{Subject: c.subject("job %s won't be %s", target, participle(a)), Text: paragraphs(
		fmt.Sprintf("The job %s won't be %s: %s.", target, participle(a), strings.TrimSuffix(line(a.Status.Message), ".")), why)}
}

// participle returns the participle for the operation of an Action, as in "will be stopped".
func participle(a *v1.Action) string {
	if a.Spec.Do == v1.OperationRequeueJob {
		return "requeued"
	}
	return "stopped"
}

func requeueMeans(a *v1.Action) string {
	if a.Spec.Do != v1.OperationRequeueJob {
		return ""
	}
	return " All of its tasks are stopped, and run again when the scheduler has placed them. This doesn't count against jobRetryCount."
}

func (c *Config) result(a *v1.Action) Notice {
	ended := fmt.Sprintf("%s of %s %s", a.Spec.Do.Verb(), line(a.Spec.Target()), a.Status.Phase.Ended())
	return Notice{Subject: c.subject("%s", ended), Text: paragraphs("The "+ended+".", "Result: "+line(a.Status.Message),
		fmt.Sprintf("Reason: %s\nRequested by: %s\nAction: %s", line(a.Spec.Reason), by(a), a.Name))}
}

func (j *Job) title() string { return line(j.User + "/" + j.Name) }

// Sentences that explain why a person receives a message.
const (
	byJobFile = "You get this message because the job file selects it (extras.jobStatusChangeNotification).\n"
	byProfile = "You get this message because of your choices. See them with: paictl notify show\n"
)

func (c *Config) ended(j *Job) Notice {
	verb := map[jobv1.NotifyState]string{jobv1.NotifySucceeded: "succeeded", jobv1.NotifyFailed: "failed", jobv1.NotifyStopped: "was stopped"}[j.State]
	why := ""
	if text := line(j.Why); text != "" && j.State == jobv1.NotifyFailed {
		why = "Reason: " + text
	}
	if text := line(j.Stopped); text != "" && j.State == jobv1.NotifyStopped {
		why = "Reason: " + text
	}
	return Notice{Subject: c.subject("job %s %s", j.title(), verb), Text: paragraphs(fmt.Sprintf("The job %s %s at %s.", j.title(), verb, at(j.Completed)), why)}
}

func (c *Config) retried(j *Job) Notice {
	why := ""
	if text := line(j.Why); text != "" {
		why = "Reason: " + text
	}
	return Notice{Subject: c.subject("job %s is retried", j.title()), Text: paragraphs(
		fmt.Sprintf("The job %s is retried since %s. This is retry %d.", j.title(), at(j.Retried), j.Retries), why)}
}

func (c *Config) preempted(j *Job) Notice {
	return Notice{Subject: c.subject("job %s was preempted", j.title()), Text: paragraphs(
		fmt.Sprintf("The job %s was preempted: a job with a guarantee, or a pod that its machine needs more, took its place.", j.title()),
		fmt.Sprintf("It waits for GPUs since %s, and runs again as soon as it gets them. This is retry %d.", at(j.Retried), j.Retries))}
}

func (c *Config) waiting(j *Job, wait time.Duration) Notice {
	why := ""
	if text := line(j.Why); text != "" {
		why = "Reason: " + text
	}
	return Notice{Subject: c.subject("job %s has waited for %s", j.title(), spoken(wait)), Text: paragraphs(
		fmt.Sprintf("The job %s waits since %s, longer than %s.", j.title(), at(j.Waits), spoken(wait)), why,
		"The reason now: paictl job why "+line(j.Name))}
}

// spoken returns a duration in whole days, hours or minutes.
func spoken(d time.Duration) string {
	switch m := int(d.Minutes()); {
	case m%(24*60) == 0:
		return plural.Of(m/(24*60), "day")
	case m%60 == 0:
		return plural.Of(m/60, "hour")
	default:
		return plural.Of(m, "minute")
	}
}

func (c *Config) running(j *Job) Notice {
	return Notice{Subject: c.subject("job %s has started", j.title()), Text: paragraphs(fmt.Sprintf("The job %s has started at %s.", j.title(), at(j.Started)))}
}

// message returns the message for a Batch. A message with several notices is a digest that lists their subjects.
func (c *Config) message(b *Batch) *Message {
	m := &Message{ID: b.Notices[0].key()}
	if len(b.Notices) == 1 {
		n := &b.Notices[0]
		m.Subject, m.Text = n.Subject, n.Text
		if n.body != nil {
			m.Text = n.body()
		}
		m.Text = bounded(m.Text)
		return m
	}
	m.Subject = c.subject("%s", plural.Of(len(b.Notices), "notice"))
	var text strings.Builder
	fmt.Fprintf(&text, "%s within a short time. One message has them all, because each receiver gets at most %s an hour.\n\n", plural.Of(len(b.Notices), "notice"), plural.Of(c.PerHour, "message"))
	prefix := "[" + c.Cluster + "] "
	for i := range b.Notices {
		entry := fmt.Sprintf("- %s: %s\n", at(b.Notices[i].At), strings.TrimPrefix(b.Notices[i].Subject, prefix))
		if i == mostDigest || text.Len()+len(entry) > mostText-100 {
			fmt.Fprintf(&text, "\nand %d more\n", len(b.Notices)-i)
			break
		}
		text.WriteString(entry)
	}
	m.Text = text.String()
	return m
}

func bounded(text string) string {
	if len(text) <= mostText {
		return text
	}
	return strings.ToValidUTF8(text[:mostText], "") + "…\n"
}
