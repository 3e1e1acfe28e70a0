package job

import (
	"regexp"
	"slices"
	"strings"
)

// NameOf returns the name of a user's job as the caller may see it, or "" for a job that they may not know. A nil NameOf shows all names.
type NameOf func(user, name string) string

// AnotherJob replaces the name of a job that the caller may not know.
const AnotherJob = "another job"

// gangs are names of gangs in a text, USER~JOB/GROUP, as the scheduler writes them.
var gangs = regexp.MustCompile(`[A-Za-z0-9][A-Za-z0-9_.-]*~[A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)?`)

// text replaces the names of gangs that must be hidden from the caller.
func (n NameOf) text(s string) string {
	return gangs.ReplaceAllStringFunc(s, func(gang string) string {
		user, rest, _ := strings.Cut(gang, "~")
		name, _, _ := strings.Cut(rest, "/")
		return n.title(user, name, gang)
	})
}

// title returns the name of a job as the caller may see it, or its real name.
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

// job returns the title of a job, user/name, as messages show it.
func (n NameOf) job(title string) string {
	user, name, ok := strings.Cut(title, "/")
	if n == nil || !ok {
		return title
	}
	return n.title(user, name, title)
}

// why replaces names in an explanation of a job.
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

// replace replaces a text wherever it is a whole word.
func (w *Why) replace(old, with string) {
	word := regexp.MustCompile(`(^|[^A-Za-z0-9_.~/-])` + regexp.QuoteMeta(old) + `($|[^A-Za-z0-9_~/-])`)
	w.each(func(s string) string {
		return word.ReplaceAllString(s, "${1}"+strings.ReplaceAll(with, "$", "$$")+"${2}")
	})
}

// each changes every text but the program's log.
func (w *Why) each(change func(string) string) {
	w.Sentence = change(w.Sentence)
	for i := range w.Remedy {
		w.Remedy[i] = change(w.Remedy[i])
	}
	for i := range w.Facts {
		w.Facts[i].Text = change(w.Facts[i].Text)
	}
}

// Waiting returns a queue without the names that the caller may not know.
func (n NameOf) Waiting(queue []WaitingGang) []WaitingGang {
	if n == nil {
		return queue
	}
	out := slices.Clone(queue)
	for i := range out {
		g := &out[i]
		g.Reason = n.text(g.Reason)
		if told := n.job(g.Job); told != g.Job {
			g.Job, g.Group, g.User, g.Reason = told, "", "", "not told" // a quota's reason names the user
		}
	}
	return out
}
