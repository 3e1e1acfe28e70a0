package job

import (
	"regexp"
	"strings"
)

// NameOf says how a user's job is called to whoever asks; "" is one that they may not know of. nil tells all names.
type NameOf func(user, name string) string

// AnotherJob is what a job is called whose name isn't told.
const AnotherJob = "another job"

// gangs are names of gangs in a text, USER~JOB/GROUP, as the scheduler writes them.
var gangs = regexp.MustCompile(`[A-Za-z0-9][A-Za-z0-9_.-]*~[A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)?`)

// text is a text without names of gangs that aren't told.
func (n NameOf) text(s string) string {
	return gangs.ReplaceAllStringFunc(s, func(gang string) string {
		user, rest, _ := strings.Cut(gang, "~")
		name, _, _ := strings.Cut(rest, "/")
		return n.title(user, name, gang)
	})
}

// title is how a job is called; as is what it is called where its name is told.
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

// why takes names out of an explanation of a job.
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

// replace writes another text for one, wherever it stands as a whole word.
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

// waiting takes names out of a queue.
func (n NameOf) waiting(list *WaitingList) {
	if n == nil {
		return
	}
	for i := range list.Items {
		g := &list.Items[i]
		g.Reason = n.text(g.Reason)
		if told := n.job(g.Job); told != g.Job {
			g.Job, g.Group, g.User, g.Reason = told, "", "", "not told" // a quota's reason names the user
		}
	}
}
