package browser

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/people/template"
	v1 "github.com/openpai/paictl/pkg/people/v1"
	"github.com/openpai/paictl/pkg/server/servertest"
)

// tuning is the job file of a template. It contains comments and quotes that a change must preserve.
const tuning = `# Fine-tunes a model on one machine.
protocolVersion: 2
name: finetune
type: job
prerequisites:
  - {name: image, type: dockerimage, uri: 'pytorch/pytorch:2.9.0'}
parameters:
  model: bert-base   # a name of the hub
  lr: 3e-5
  "data dir": '/data/sst2'
taskRoles:
  train:
    instances: 1
    dockerImage: image
    resourcePerInstance: {cpu: 4, memoryMB: 16384, gpu: 1}
    commands:
      - python train.py --model <% $parameters.model %> --lr <% $parameters.lr %>
defaults: {virtualCluster: speech}
`

// template adds a template as a person, and returns the template's id.
func (w *world) template(author string, spec *v1.TemplateSpec) string {
	w.t.Helper()
	spec.Author, spec.Type = author, "template"
	body, err := json.Marshal(spec)
	require.NoError(w.t, err)
	a := w.Do("POST", "/api/v3/templates", w.tokens[author], string(body))
	require.Equal(w.t, http.StatusCreated, a.Status, a.Body)
	return a.JSON()["id"].(string)
}

// templates creates the templates of a team, and returns their ids by name.
func (w *world) templates() map[string]string {
	w.t.Helper()
	w.Group("browser-administrators", func(g *v1.GroupSpec) { g.Administrator = true })
	w.Person("rita", "browser-administrators")
	w.tokens["rita"] = w.SignIn("rita")
	out := map[string]string{}
	add := func(author string, spec *v1.TemplateSpec) { out[spec.Name] = w.template(author, spec) }
	small := servertest.JobFile("hello", "speech")
	add("rita", &v1.TemplateSpec{Name: "Hello", Job: small, Public: true, Summary: "Prints a line: the first job of a newcomer", Categories: []string{v1.CategoryOfficial, "start here"}, Tags: []string{"cpu"}})
	add("rita", &v1.TemplateSpec{Name: "PyTorch DDP", Job: small, Public: true, Summary: "Trains on all GPUs of several machines with torchrun", Categories: []string{v1.CategoryOfficial}, Tags: []string{"pytorch", "nccl"}})
	add("bob", &v1.TemplateSpec{Name: "Fine-tune BERT", Job: tuning, Groups: []string{"speech"}, Summary: "GLUE tasks on one GPU, with early stopping",
		Description: "Fine-tunes a model of the hub on a folder of files.\n\nIt writes checkpoints every 500 steps, and continues after a preemption.\n<b>not bold</b>", Tags: []string{"bert", "nlp", "pytorch"}})
	add("vic", &v1.TemplateSpec{Name: "ResNet sweep", Job: small, Public: true, Tags: []string{"vision"}})
	add("ann", &v1.TemplateSpec{Name: "wav2vec (large)", Job: small, Summary: "Pre-training on LibriSpeech, 8 GPUs", Tags: []string{"speech"}})
	for _, star := range []string{"ann PyTorch DDP", "bob PyTorch DDP", "vic PyTorch DDP", "bob Hello", "ann Fine-tune BERT"} {
		who, name, _ := strings.Cut(star, " ")
		require.Equal(w.t, http.StatusOK, w.Do("PUT", "/api/v3/templates/"+out[name]+"/star", w.tokens[who], "").Status)
	}
	for _, who := range []string{"ann", "bob", "vic"} {
		require.Equal(w.t, http.StatusOK, w.Do("POST", "/api/v3/templates/"+out["Hello"]+"/use", w.tokens[who], "").Status)
	}
	return out
}

func TestTemplates(t *testing.T) {
	b := openTab(t)
	w := newWorld(t)

	// If there are no templates, the page explains how to create one.
	b.signIn(w, "/templates", "ann")
	b.has(".empty", "Save a job file as a template")
	ids := w.templates()
	bert := "/templates/" + ids["Fine-tune BERT"]

	// The address of the page contains the search text, the view and the tag.
	b.do(chromedp.Navigate(w.URL + "/templates"))
	b.shows("document.querySelectorAll('.template').length === 5 && document.querySelector('.template a').innerText === 'PyTorch DDP'")
	for view, want := range map[string]string{"Mine": "wav2vec (large)", "Official": "PyTorch DDP,Hello", "Starred": "PyTorch DDP,Fine-tune BERT"} {
		b.press(".segments button", view)
		b.shows("[...document.querySelectorAll('.template a.whole')].map(e => e.innerText).join() === '" + want + "'")
		b.shows("location.search === '?view=" + strings.ToLower(view) + "'")
	}
	b.press(".segments button", "All")
	b.press(".labels a", "nlp")
	b.shows("location.search === '?label=nlp' && document.querySelectorAll('.template').length === 1")
	b.do(chromedp.Navigate(w.URL + "/templates?keyword=GLUE&order=name"))
	b.shows("document.querySelectorAll('.template').length === 1")
	b.do(chromedp.Navigate(w.URL + "/templates?keyword=nothing"))
	b.has(".empty", "No template matches")

	// A page shows a template as text, never as HTML. A star of the same person counts only once.
	b.do(chromedp.Navigate(w.URL + bert))
	b.has(".description", "<b>not bold</b>")
	b.has(".facts", "speech")
	b.has(".actions .star", "1")
	b.press(".actions .star", "1")
	b.shows("document.querySelector('.actions .star[aria-pressed=false]').innerText.trim() === '0'")
	b.press(".actions .star", "0")
	b.shows("document.querySelector('.actions .star[aria-pressed=true]').innerText.trim() === '1'")

	// The values of parameters replace the values in the file, and are part of the address.
	b.fill(`input[name="model"]`, "bert-large: uncased")
	b.fill(`input[name="lr"]`, "1e-5")
	b.fill(`input[name="data dir"]`, "/data/it's")
	changed := strings.NewReplacer("model: bert-base ", "model: 'bert-large: uncased' ", "lr: 3e-5", "lr: 1e-5", "'/data/sst2'", "'/data/it''s'").Replace(tuning)
	b.shows("document.querySelector('pre.code').textContent === " + quote(changed))
	b.shows("new URLSearchParams(location.search).get('set.lr') === '1e-5'")
	b.menu("Copy the submission as paictl")
	b.shows(`window.copied === "paictl job submit --template 'bob/Fine-tune BERT' --set 'model=bert-large: uncased' --set lr=1e-5 --set 'data dir=/data/it'\\''s'"`)
	b.shows("!document.querySelector('.menu-list')")

	// The Use button opens the file on the Submit page, where the form can be completed. The submission counts as a use of the template.
	w.submit("ann", "finetune", "speech", 1) // the name is used
	b.run(remembers)
	b.press(".actions a.primary", "Use")
	b.checks(strings.Replace(changed, "name: finetune", "name: finetune-2", 1))
	b.fill(`input[name="lr"]`, "0.5")
	b.shows("window.checked.includes('\\n  lr: 0.5\\n')")
	b.has(".verdict", "The server accepts this job")
	b.press(".top .primary", "Submit job")
	b.shows("location.pathname === '/jobs/ann/finetune-2'")
	b.has(".why", "")
	w.Eventually("the template counts the job", func() bool {
		return w.Do("GET", "/api/v3"+bert, w.tokens["ann"], "").JSON()["uses"] == 1.0
	})

	// A job is saved as a template. Its author changes and removes the template.
	b.menu("Save as template")
	b.shows("document.querySelector('[name=job]')?.value.includes('lr: 0.5')")
	b.fill(`input[name="name"]`, "Fine-tune fast")
	b.fill(`input[name="summary"]`, "With a high rate")
	b.fill(`input[name="tags"]`, "bert, fast")
	b.press("fieldset label", "These groups")
	b.press(".choices label", "speech")
	b.press(".top .primary", "Save")
	b.has(".top h1", "Fine-tune fast")
	b.has(".facts", "fast")
	b.menu("Edit")
	b.fill(`textarea[name="job"]`, "name: 7")
	b.press(".top .primary", "Save")
	b.has(".problem", "InvalidProtocolError")
	b.fill(`textarea[name="job"]`, tuning)
	b.fill(`input[name="summary"]`, "Changed")
	b.press(".top .primary", "Save")
	b.has(".lead", "Changed")
	b.shows("[...document.querySelectorAll('.facts div')].find(e => e.innerText.startsWith('Version')).innerText.endsWith('2')")
	b.menu("Delete")
	b.has("dialog[open]", "Remove the template Fine-tune fast?")
	b.press("dialog[open] button.primary", "Delete")
	b.shows("location.pathname === '/templates' && document.querySelectorAll('.template').length === 5")

	// The job file of the Submit page can be saved as a template, too. Its secrets are masked, and the form explains that.
	b.do(chromedp.Navigate(w.URL + "/submit"))
	b.shows("document.querySelector('.cm-content')")
	b.jobFile(tuning + "secrets: {token: very-secret}\n")
	b.menu("Save as template")
	b.shows("document.querySelector('[name=job]')?.value.includes('very-secret')")
	b.press(".top .primary", "Save")
	b.has(".note", "Secrets of this template are masked")
	b.shows("!document.querySelector('pre.code').textContent.includes('very-secret')")

	// The pages of other people's templates don't offer changes.
	b.do(chromedp.Navigate(w.URL + bert))
	b.shows("document.querySelector('.top .menu button')")
	b.run("document.querySelector('.top .menu button').click()")
	b.has("[role=menuitem]", "Copy as paictl")
	b.shows("![...document.querySelectorAll('[role=menuitem]')].some(e => e.innerText.includes('Edit'))")
	b.narrow(w, "/templates", bert, "/templates/new")
}

// Built-in templates follow the templates of people. They can be used, starred and copied, but not even an administrator can change them.
func TestTheCatalogueOfTemplates(t *testing.T) {
	b := openTab(t)
	builtIn, err := template.BuiltIn()
	require.NoError(t, err)
	w := newWorld(t, func(o *servertest.Options) { o.BuiltIn = builtIn })
	w.Group("browser-administrators", func(g *v1.GroupSpec) { g.Administrator = true })
	w.Person("rita", "browser-administrators")
	w.tokens["rita"] = w.SignIn("rita")
	w.template("rita", &v1.TemplateSpec{Name: "zebra", Job: servertest.JobFile("hello", "speech")})
	b.signIn(w, "/templates", "rita")
	const names = "[...document.querySelectorAll('.template a.whole')].map(e => e.innerText)"
	b.shows(names + ".length === " + strconv.Itoa(1+len(builtIn)) + " && " + names + "[0] === 'zebra'")
	b.shows("[...document.querySelectorAll('.template footer')].filter(e => e.innerText.includes('Built in')).length === " + strconv.Itoa(len(builtIn)))
	b.press(".segments button", "Shared with me")
	b.has(".empty", "No template matches")
	b.do(chromedp.Navigate(w.URL + "/templates?label=serving"))
	b.shows(names + ".join() === 'vllm'")
	b.press(".template .star", "0")
	b.shows("document.querySelector('.template .star[aria-pressed=true]').innerText.trim() === '1'")
	b.press(".template a.whole", "vllm")
	b.has(".lead", "Serve a language model")
	b.has(".facts", "Built in")
	b.has(".note", "Secrets of this template are masked")
	b.shows("!document.querySelector('.facts').innerText.includes('Created') && document.querySelector('input[name=model]').value === 'Qwen/Qwen2.5-0.5B-Instruct'")
	b.run("document.querySelector('.top .menu button').click()")
	b.has("[role=menuitem]", "Copy as paictl")
	b.shows("![...document.querySelectorAll('[role=menuitem]')].some(e => e.innerText.includes('Edit') || e.innerText.includes('Delete'))")
	b.run("document.querySelector('.top .menu button').click()")
	b.shows("!document.querySelector('.menu-list')")
	b.menu("Make a copy")
	b.has("h1", "A copy of vllm")
	b.shows("document.querySelector('[name=job]').value.includes('VLLM_API_KEY') && document.querySelector('[name=categories]').value === 'serving' && !document.querySelector('[name=official]').checked")
	b.press(".top .primary", "Save")
	b.shows("document.querySelector('.facts')?.innerText.includes('rita')")
	b.narrow(w, "/templates")
}

// The form shows those parameters that are texts in one line. A change replaces one value. If the parameters aren't valid YAML, the form shows none
// of them.
func TestFormOfParameters(t *testing.T) {
	b := openTab(t)
	w := newWorld(t)
	b.signIn(w, "/submit", "ann")
	b.shows("document.querySelector('.cm-content')")
	b.run(remembers)
	for _, c := range []struct{ file, name, value, want string }{
		{"parameters:\n  lr: 0.1 # rate\nname: x\n", "lr", "0.01", "parameters:\n  lr: 0.01 # rate\nname: x\n"},
		{"parameters:\n  model: bert\n", "model", "true", "parameters:\n  model: 'true'\n"},
		{"parameters:\n  on: true\n", "on", "false", "parameters:\n  on: false\n"},
		{"parameters:\n  empty:\n  b: 2\n", "empty", "x # y", "parameters:\n  empty: 'x # y'\n  b: 2\n"},
		{"parameters:\n  a: \"q\\\"\\t\" # c\n", "a", `say "no"`, "parameters:\n  a: \"say \\\"no\\\"\" # c\n"},
		{"parameters: {a: 1, b: two words} # x\n", "b", "x, y", "parameters: {a: 1, b: 'x, y'} # x\n"},
		{"parameters:\n  list: [1, 2]\n  long: |\n    text\n  c: 3\n", "c", "", "parameters:\n  list: [1, 2]\n  long: |\n    text\n  c: ''\n"},
		{"parameters:\n  a: http://x:80/y#z\n", "a", "- 4", "parameters:\n  a: '- 4'\n"},
		{file: "parameters:\n  list: [1, 2]\n"},
		{file: "parameters:\n  a: 1\n b: 2\n"},
		{file: "parameters:\n\ta: 1\n"},
		{file: "parameters:\n  a: x: y\n"},
		{file: "parameters:\n  a: 'x' y\n"},
		{file: "parameters:\n  a: 1\n  a: 2\n"},
		{file: "parameters:\n  a: 1\nparameters:\n  b: 2\n"},
		{file: "parameters:\n- a: 1\n"},
		{file: "parameters: {a: 1, b: [2]}\n"},
		{file: "parameters:\n  a: 1\n---\nname: x\n"},
	} {
		b.jobFile(c.file)
		b.checks(c.file)
		if c.name == "" {
			b.shows("!document.querySelector('.parameters')")
			continue
		}
		b.fill(`input[name="`+c.name+`"]`, c.value)
		b.checks(c.want)
	}
}

// quote returns a text as a JavaScript string.
func quote(text string) string {
	out, _ := json.Marshal(text) // a string has no error
	return string(out)
}

// menu selects an operation in the menu of the page. If the operation copies a text, the text is then in window.copied.
func (b *tab) menu(label string) {
	b.t.Helper()
	b.shows("document.querySelector('.top .menu button')")
	b.run("Object.defineProperty(navigator, 'clipboard', {configurable: true, value: {writeText: async t => { window.copied = t }}})")
	b.run("document.querySelector('.top .menu button').click()")
	b.press("[role=menuitem]", label)
}

// narrow opens pages on a phone, and asserts that no line is wider than the screen.
func (b *tab) narrow(w *world, pages ...string) {
	b.t.Helper()
	b.do(chromedp.EmulateViewport(390, 844))
	for _, page := range pages {
		b.do(chromedp.Navigate(w.URL + page))
		b.shows("document.querySelector('main h1') && !document.querySelector('.loading')")
		b.shows("document.documentElement.scrollWidth <= 390")
	}
}
