package browser

import (
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// The page of a copied job shows the job that it was cloned from, and the lines that were changed.
func TestTheChangesOfACopy(t *testing.T) {
	b := openTab(t)
	w := newWorld(t)
	a := w.Do("POST", "/api/v2/jobs", w.tokens["bob"], exampleFile, "Content-Type", "text/yaml")
	require.Equal(t, 202, a.Status, a.Body)

	b.signIn(w, "/jobs/bob/from-the-editor", "ann")
	b.press(".actions a", "Clone")
	b.has(".cm-content", "taskRoles")
	b.has(".verdict", "The server accepts this job")
	b.form()
	b.fill(`.job-form [name="taskRoles.worker.instances"]`, "3")
	b.fill(".job-form [name=name]", "second-run")
	b.has(".verdict", "tasks: 3")
	b.press(".top .primary", "Submit job")
	b.shows("location.pathname === '/jobs/ann/second-run'")

	b.press(".tabs a", "Configuration")
	b.has(".parent", "Cloned from bob/from-the-editor")
	b.shows("[...document.querySelectorAll('.diff del')].map(e => e.textContent).join('') === '- name: from-the-editor\\n-     instances: 1\\n'")
	b.shows("[...document.querySelectorAll('.diff ins')].map(e => e.textContent).join('') === '+ name: second-run\\n+     instances: 3\\n'")
	b.has(".diff", "unchanged lines: 2")
	b.press(".parent a", "bob/from-the-editor")
	b.shows("location.pathname === '/jobs/bob/from-the-editor'")
	b.shows("!document.querySelector('.parent')")

	// A copy is copied again, and only its name is changed.
	b.do(chromedp.Navigate(w.URL + "/submit?clone=ann/second-run"))
	b.has(".verdict", "The server accepts this job")
	b.press(".top .primary", "Submit job")
	b.shows("location.pathname === '/jobs/ann/second-run-2'")
	b.press(".tabs a", "Configuration")
	b.shows("document.querySelectorAll('.diff ins').length === 1 && document.querySelectorAll('.diff del').length === 1")

	// A person who may not see the jobs of speech doesn't see the copy.
	b = openTab(t)
	b.signIn(w, "/jobs/ann/second-run?tab=config", "vic")
	b.has(".problem", "NoJobError")
	b.shows("!document.querySelector('.diff')")
}
