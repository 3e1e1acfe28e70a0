package browser

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// form switches from the job file to the form.
func (b *tab) form() {
	b.t.Helper()
	b.press(".segments button", "Form")
}

var (
	nameLine      = regexp.MustCompile(`(?m)^name:[ \t]*(\S+)`)
	instancesLine = regexp.MustCompile(`(?m)^(  ([\w-]+):(?:\n    .*)*?\n    instances: )(\d+)`)
)

// While the form shows one of our examples, the text of the example stays identical to the byte. A change in the form edits one line, and the
// opposite change restores the same bytes.
func TestExamplesInTheFormOfAJob(t *testing.T) {
	b := openTab(t)
	w := newWorld(t)
	b.signIn(w, "/submit", "ann")
	b.shows("document.querySelector('.cm-content')")
	b.run(remembers)
	var files []string
	for _, folder := range []string{"jobs", "catalogue"} {
		found, err := filepath.Glob("../../examples/" + folder + "/*.yaml")
		require.NoError(t, err)
		files = append(files, found...)
	}
	require.Greater(t, len(files), 20)
	for i, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		text := string(data)
		if filepath.Base(file) == "syntax-error.yaml" {
			continue
		}
		b.jobFile(text)
		if i == 0 {
			b.form()
		}
		b.checks(text)
		name := nameLine.FindStringSubmatch(text)[1]
		b.shows("document.querySelector('.job-form input[name=name]')?.value === " + quote(name))
		changed := nameLine.ReplaceAllString(text, "name: another")
		b.fill(".job-form input[name=name]", "another")
		if m := instancesLine.FindStringSubmatch(changed); m != nil {
			b.fill(`.job-form input[name="taskRoles.`+m[2]+`.instances"]`, m[3]+"7")
			changed = strings.Replace(changed, m[0], m[0]+"7", 1)
		}
		b.checks(changed)
	}
}

const wholeJob = `# A job with comments.
protocolVersion: 2
name: whole   # mine
type: job
prerequisites:
  # the image
  - {name: image, type: dockerimage, uri: "python:3.12"}
  - name: code   # by hand
    type: script
    uri: 'http://example.org/x'
taskRoles:
  # workers
  worker:
    instances: 2  # machines
    dockerImage: image
    script: code
    resourcePerInstance: {cpu: 1, memoryMB: 1024, gpu: 1}
    commands:
      - echo one   # first
      # a note
      - |
        if true; then
          echo two
        fi
deployments:
  - name: lab
    taskRoles: {worker: {preCommands: [date]}}
defaults: {virtualCluster: speech}
extras:
  hivedScheduler:
    taskRoles:
      worker: {skuType: a100}
  com.microsoft.pai.runtimeplugin:
    - plugin: ssh
      parameters: {jobssh: true}
      taskroles: [worker]
  mine: {of: [a, b]}
`

func TestAFormOfAWholeJob(t *testing.T) {
	b := openTab(t)
	w := newWorld(t)
	b.signIn(w, "/submit", "ann")
	b.shows("document.querySelector('.cm-content')")
	b.run(remembers)
	b.jobFile(wholeJob)
	b.checks(wholeJob)
	b.form()
	b.shows("document.querySelector('.job-form')")
	text := wholeJob
	// becomes expects that the last change in the form replaced exactly these texts.
	becomes := func(pairs ...string) {
		b.t.Helper()
		for i := 0; i < len(pairs); i += 2 {
			require.Contains(b.t, text, pairs[i])
			text = strings.Replace(text, pairs[i], pairs[i+1], 1)
		}
		b.checks(text)
	}
	field := func(name string) string { return ".job-form [name=" + quote(name) + "]" }
	set := func(name, value string) { b.t.Helper(); b.fill(field(name), value) }
	leave := func(name string) {
		b.t.Helper()
		b.run("document.querySelector(" + quote(field(name)) + ").dispatchEvent(new FocusEvent('blur'))")
	}

	set("name", "whole-2")
	becomes("name: whole ", "name: whole-2 ")
	set("defaults.virtualCluster", "vision")
	becomes("virtualCluster: speech", "virtualCluster: vision")
	set("extras.hivedScheduler.jobPriorityClass", "prod")
	becomes("      worker: {skuType: a100}\n", "      worker: {skuType: a100}\n    jobPriorityClass: prod\n")
	set("jobRetryCount", "3")
	becomes("    uri: 'http://example.org/x'\n", "    uri: 'http://example.org/x'\njobRetryCount: 3\n")
	set("description", "yes: # no comment")
	becomes("type: job\n", "type: job\ndescription: 'yes: # no comment'\n")
	set("taskRoles.worker.instances", "4")
	becomes("instances: 2 ", "instances: 4 ")
	set("taskRoles.worker.resourcePerInstance.gpu", "8")
	becomes("gpu: 1}", "gpu: 8}")
	set("taskRoles.worker.completion.minFailedInstances", "-1")
	becomes("instances: 4  # machines\n", "instances: 4  # machines\n    completion:\n      minFailedInstances: -1\n")
	set("taskRoles.worker.commands.0", "echo 'one'")
	becomes("- echo one   #", "- echo 'one'   #")
	set("taskRoles.worker.commands.1", "echo two\necho three\n")
	becomes("        if true; then\n          echo two\n        fi\n", "        echo two\n        echo three\n")
	set("deployments.0.taskRoles.worker.preCommands", "date\nhostname")
	becomes("[date]", "[date, hostname]")
	set("deployments.0.taskRoles.worker.postCommands", "date")
	becomes("[date, hostname]}", "[date, hostname], postCommands: [date]}")
	set("extras.com.microsoft.pai.runtimeplugin.0.failurePolicy", "ignore")
	becomes("      taskroles: [worker]\n", "      taskroles: [worker]\n      failurePolicy: ignore\n")
	set("extras.mine.of", "a\nb\nc")
	becomes("[a, b]", "[a, b, c]")

	// If a field is emptied, its line is removed when the person leaves the field.
	set("jobRetryCount", "")
	b.shows("document.querySelector(" + quote(field("jobRetryCount")) + ").value === ''")
	leave("jobRetryCount")
	becomes("jobRetryCount: 3\n", "")
	set("taskRoles.worker.completion.minFailedInstances", "")
	leave("taskRoles.worker.completion.minFailedInstances")
	becomes("    completion:\n      minFailedInstances: -1\n", "")

	// If a role or a prerequisite gets a new name, the references to it are changed, too.
	set("taskRoles.worker", "trainer")
	becomes("  worker:\n    instances", "  trainer:\n    instances", "{worker: {pre", "{trainer: {pre", "worker: {sku", "trainer: {sku", "taskroles: [worker]", "taskroles: [trainer]")
	set("prerequisites.0.name", "py")
	becomes("{name: image,", "{name: py,", "dockerImage: image", "dockerImage: py")

	// Parts of the job are added and removed.
	b.press(".job-form button", "Add a parameter")
	becomes("    uri: 'http://example.org/x'\n", "    uri: 'http://example.org/x'\nparameters:\n  name1: value\n")
	set("parameters.name1", "it's")
	becomes("name1: value", "name1: it's")
	set("parameters.name1.", "rate")
	becomes("name1:", "rate:")
	b.press(".job-form button", "Add a secret")
	becomes("  rate: it's\n", "  rate: it's\nsecrets:\n  name1: ''\n")
	b.press(".job-form button", "Add a task role")
	role := "  worker:\n    instances: 1\n    dockerImage: py\n    resourcePerInstance:\n      cpu: 1\n      memoryMB: 1024\n      gpu: 0\n    commands:\n      - echo hello\n"
	becomes("        echo three\n", "        echo three\n"+role)
	b.run("document.querySelector('.job-form [aria-label=\"Remove worker\"]').click()")
	becomes(role, "")
	b.press(".job-form button", "Add a storage")
	becomes("  mine: {of: [a, b, c]}\n", "  mine: {of: [a, b, c]}\n  storages:\n    - name: storage\n")
	b.run("document.querySelector('.job-form [aria-label=\"Remove storage\"]').click()")
	becomes("  storages:\n    - name: storage\n", "")
	b.run("document.querySelector('.job-form [aria-label=\"Remove code\"]').click()")
	becomes("  - name: code   # by hand\n    type: script\n    uri: 'http://example.org/x'\n", "")

	// The document contains all changes. Undo in the document reverts the changes of the form.
	b.press(".segments button", "Document")
	b.has(".cm-content", "whole-2")
	b.shows("!document.querySelector('.job-form')")
	b.run("document.querySelector('.cm-content').focus()")
	b.ctrl("z")
	b.shows("window.checked.includes('by hand')")
}

// If the form can't read a document, the page shows the document as text. For a part that the form can't change, the form links to the text.
func TestDocumentsThatAFormCannotShow(t *testing.T) {
	b := openTab(t)
	w := newWorld(t)
	b.signIn(w, "/submit", "ann")
	b.shows("document.querySelector('.cm-content')")
	b.run(remembers)
	b.form()
	b.jobFile("name: a\ntaskRoles: {\n")
	b.has(".job-form .note", "The form can't show this document.")
	b.press(".job-form .note button", "Show line")
	b.shows("document.querySelector('.cm-content').offsetParent && !document.querySelector('.job-form')")
	const anchored = "name: &n a # kept\njobRetryCount: 1\ndescription: *n\n"
	b.jobFile(anchored)
	b.checks(anchored)
	b.form()
	b.fill(".job-form [name=jobRetryCount]", "2")
	b.checks(strings.Replace(anchored, "Count: 1", "Count: 2", 1))
	b.press(".job-form button", "In the document")
	b.has(".job-form .note", "Only the document can change this part.")
}
