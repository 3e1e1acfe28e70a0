package job

import (
	"regexp"
	"slices"
	"strings"
)

// NameOf returns the name of a job as the caller may see it, or "" for a job whose name the caller may not know. A nil NameOf shows all names.
type NameOf func(user, name string) string

// AnotherJob is shown instead of the name of a job that the caller may not know.
const AnotherJob = "another job"

// gangs matches the names of gangs in a text, in the form that the scheduler writes, USER~JOB/GROUP.
var gangs = regexp.MustCompile(`[A-Za-z0-9][A-Za-z0-9_.-]*~[A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)?`)

// text replaces the names of gangs that the caller may not know.
func (n NameOf) text(s string) string {
	if !strings.Contains(s, "~") { // most texts name no gang, and the expression is slow
		return s
	}
	return gangs.ReplaceAllStringFunc(s, func(gang string) string {
		user, rest, _ := strings.Cut(gang, "~")
		name, _, _ := strings.Cut(rest, "/")
		return n.title(user, name, gang)
	})
}

// title returns as if the caller may see the real name of the job. Otherwise, it returns the name that the caller may see, or AnotherJob.
func (n NameOf) title(user, name, as string) string {
	switch told := n(user, name); told {
	case "":
		return AnotherJob
	case user + "/" + name:
		return as
	default:
		return told
	}
}

// job returns a job's title, user/name, in the form that the caller may see.
func (n NameOf) job(title string) string {
	user, name, ok := strings.Cut(title, "/")
	if n == nil || !ok {
		return title
	}
	return n.title(user, name, title)
}

// why replaces the names of other jobs in an explanation of a job.
func (n NameOf) why(w *Why, j *Job) {
	if n == nil {
		return
	}
	for _, title := range w.others {
		if told := n.job(title); told != title && title != j.Title() {
			w.replace(title, told)
		}
	}
	w.each(n.text)
}

// replace replaces a text in the explanation wherever the text is a whole word.
func (w *Why) replace(old, with string) {
	word := regexp.MustCompile(`(^|[^A-Za-z0-9_.~/-])` + regexp.QuoteMeta(old) + `($|[^A-Za-z0-9_~/-])`)
	w.each(func(s string) string {
		return word.ReplaceAllString(s, "${1}"+strings.ReplaceAll(with, "$", "$$")+"${2}")
	})
}

// each changes every text of the explanation except the program's log.
func (w *Why) each(change func(string) string) {
	w.Sentence = change(w.Sentence)
	for i := range w.Remedy {
		w.Remedy[i] = change(w.Remedy[i])
	}
	for i := range w.Facts {
		w.Facts[i].Text = change(w.Facts[i].Text)
	}
}

// Waiting returns a queue in which the names that the caller may not know are hidden.
func (n NameOf) Waiting(queue []WaitingGang) []WaitingGang {
	if n == nil {
		return queue
	}
	out := slices.Clone(queue)
	for i := range out {
		g := &out[i]
		g.Reason = n.text(g.Reason)
		if told := n.job(g.Job); told != g.Job {
			g.Job, g.Group, g.User, g.Reason = told, "", "", "not told" // the reason of a quota contains the name of the user
		}
	}
	return out
}
