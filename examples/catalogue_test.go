package examples_test

import (
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"

	"github.com/openpai/paictl/examples"
	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/job/protocol"
	"github.com/openpai/paictl/pkg/job/protocol/render"
	v1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/runtime/env"
	"github.com/openpai/paictl/pkg/runtime/peers"
	"github.com/openpai/paictl/pkg/runtime/spec"
)

func catalogue(t *testing.T) []examples.Template {
	t.Helper()
	all, err := examples.Templates()
	require.NoError(t, err)
	return all
}

// awkward is a secret that contains characters with a special meaning for a shell, for YAML or for the runtime.
const awkward = `open<sesame>&"$HOME"'s %#4711`

// unmasked replaces each mask in a job file with a secret, as a person does.
func unmasked(text string) string {
	return strings.ReplaceAll(text, `"`+protocol.Masked+`"`, `'`+strings.ReplaceAll(awkward, "'", "''")+`'`)
}

func TestEachTemplateSaysWhatItIs(t *testing.T) {
	all := catalogue(t)
	names := map[string]bool{}
	for _, one := range all {
		assert.False(t, names[one.Name], "two are named %s", one.Name)
		names[one.Name] = true
		assert.NotEmpty(t, one.Summary, one.Name)
		assert.NotContains(t, one.Summary, "\n", one.Name)
		assert.Contains(t, []string{"start", "data", "training", "tools", "serving"}, one.Category, one.Name)
		assert.True(t, strings.HasPrefix(one.Job, "# "), "%s begins with what it shows", one.Name)
		assert.Regexp(t, `(?m)^#   paictl job submit `, one.Job, "%s says how to submit it", one.Name)
	}
	for _, name := range []string{"hello", "sweep", "download", "pytorch-ddp", "deepspeed", "horovod", "tensorflow", "jax", "ray", "jupyter", "tensorboard", "vllm"} {
		assert.True(t, names[name], name)
	}
}

// pinned matches an image with a registry, and with a tag that doesn't move to another image with each release.
var pinned = regexp.MustCompile(`^[a-z0-9.-]+\.[a-z]+/[a-z0-9./-]+:[A-Za-z0-9._-]*\d[A-Za-z0-9._-]*$`)

// Secrets belong to the person who submits the job. If a template contained a fixed secret, all users would have the same secret.
func TestATemplateHasNoSecretsAndNoMovingImages(t *testing.T) {
	for _, one := range catalogue(t) {
		var file struct {
			Secrets       map[string]string
			Prerequisites []struct{ URI string }
		}
		require.NoError(t, yaml.Unmarshal([]byte(one.Job), &file), one.Name)
		for name, value := range file.Secrets {
			assert.Equal(t, protocol.Masked, value, "%s: %s", one.Name, name)
		}
		_, findings := protocol.Parse(one.Name, []byte(one.Job))
		assert.Equal(t, len(file.Secrets) > 0, findings.Err() != nil, "%s is refused until its secrets are written", one.Name)
		for _, p := range file.Prerequisites {
			assert.Regexp(t, pinned, p.URI, one.Name)
		}
	}
}

// facts returns the facts about a cluster with which a submission compares a job.
func facts() render.Cluster {
	return render.Cluster{
		RuntimeImage: "registry.example.com/pai-runtime:v1", SchedulerName: "pai-scheduler", NodeLabels: map[string]string{"pai-worker": "true"}, PeersURL: "http://job-controller/v1/peers",
		VirtualClusters: map[string]render.VirtualCluster{"default": {Cells: map[string]int{"A100": 16}}},
		SKUs:            map[string]render.SKU{"A100": {GPU: 1, MilliCPU: 16000, MemoryMB: 128 << 10, PerNode: 8}},
		Storages:        map[string]render.Storage{"team": {}},
	}
}

// made is a job in the form that a submission creates.
type made struct {
	framework *v1.Framework
	spec      *spec.Spec
}

// submitted creates the objects of a job as a submission does. Neither the file nor the cluster may cause a warning.
func submitted(t *testing.T, text string) made {
	t.Helper()
	j, findings := protocol.Parse("job.yaml", []byte(text))
	require.Empty(t, findings, "%v", findings)
	objects, findings := render.Render(j, render.Options{User: "ann", Cluster: facts()})
	require.Empty(t, findings, "%v", findings)
	decoded, err := spec.Decode(objects.Secrets[0].Data[v1.SpecKey])
	require.NoError(t, err)
	return made{objects.Framework, decoded}
}

// other returns another value for a parameter with the given value.
func other(value string) string {
	if regexp.MustCompile(`^[\d. ]+$`).MatchString(value) {
		return "7"
	}
	return "other & <value>$x"
}

func TestEachTemplateIsSubmittedWithItsValuesAndWithOthers(t *testing.T) {
	for _, one := range catalogue(t) {
		t.Run(one.Name, func(t *testing.T) {
			text := unmasked(one.Job)
			usual := submitted(t, text)
			assert.Equal(t, one.Name, usual.spec.Job)
			var file struct{ Parameters, Secrets map[string]string }
			require.NoError(t, yaml.Unmarshal([]byte(text), &file))
			commands := ""
			for name, value := range file.Parameters {
				changed, err := job.SetParameter("job.yaml", []byte(text), name, other(value))
				require.NoError(t, err)
				commands = ""
				for i, role := range submitted(t, string(changed)).spec.Roles {
					checkSyntax(t, role.Command)
					if role.Command != usual.spec.Roles[i].Command {
						commands += role.Command
					}
				}
				assert.Contains(t, commands, other(value), "a command uses the parameter %s", name)
			}
			for _, role := range usual.spec.Roles {
				checkSyntax(t, role.Command)
				commands += role.Command
			}
			for name := range file.Secrets {
				assert.Contains(t, commands, awkward, "a command uses the secret %s", name)
			}
		})
	}
}

// checkSyntax checks the syntax of commands with bash, without running the commands.
func checkSyntax(t *testing.T, commands string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", "-n")
	cmd.Stdin = strings.NewReader(commands)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
}

var (
	// heredoc matches a here-document in which the shell replaces no variables. All here-documents in the commands of the catalogue end with END.
	heredoc = regexp.MustCompile(`(?s)<<'END'\n.*?\nEND\n`)
	// inPython, inShell and inArithmetic match uses of variables: in Python programs, in commands, and within ((…)).
	inPython     = regexp.MustCompile(`os\.(?:environ\[|environ\.get\(|getenv\()"(\w+)"|os\.environ\[(name)\]`)
	inShell      = regexp.MustCompile(`\$\{?([A-Za-z_]\w*)`)
	inArithmetic = regexp.MustCompile(`(?s)\(\((.*?)\)\)`)
	name         = regexp.MustCompile(`\b[A-Za-z_]\w*`)
	// capitals matches the name of a variable in a string, as in ("RANK", "WORLD_SIZE").
	capitals = regexp.MustCompile(`"([A-Z]+(?:_[A-Z]+)*)"`)
	// assigned and readInto match commands that set variables: name=, export name=, read name name.
	assigned = regexp.MustCompile(`(?m)(?:^|[\s;(])([A-Za-z_]\w*)=`)
	readInto = regexp.MustCompile(`\bread((?: +-?\w+)+)`)
)

// reads returns the variables that commands read but don't set, in sorted order.
func reads(commands string) []string {
	var out []string
	add := func(list [][]string) {
		for _, m := range list {
			out = append(out, m[1:]...)
		}
	}
	for _, file := range heredoc.FindAllString(commands, -1) {
		add(inPython.FindAllStringSubmatch(file, -1))
		if strings.Contains(file, "os.environ[name]") {
			add(capitals.FindAllStringSubmatch(file, -1))
		}
	}
	shell := heredoc.ReplaceAllString(commands, "\n")
	add(inShell.FindAllStringSubmatch(shell, -1))
	for _, m := range inArithmetic.FindAllStringSubmatch(shell, -1) {
		out = append(out, name.FindAllString(m[1], -1)...)
	}
	set := map[string]bool{"": true, "name": true, "_": true}
	for _, m := range slices.Concat(assigned.FindAllStringSubmatch(shell, -1), regexp.MustCompile(`\(\((\w+) =`).FindAllStringSubmatch(shell, -1)) {
		set[m[1]] = true
	}
	for _, m := range readInto.FindAllStringSubmatch(shell, -1) {
		for word := range strings.FieldsSeq(m[1]) {
			set[word] = true
		}
	}
	out = slices.DeleteFunc(out, func(one string) bool { return set[one] })
	slices.Sort(out)
	return slices.Compact(out)
}

func TestVariablesOfCommandsAreFound(t *testing.T) {
	for commands, want := range map[string][]string{
		`echo "$PAI_A" ${PAI_B//,/$between}`:                                          {"PAI_A", "PAI_B", "between"},
		"x=1\nread -r a b <<< \"$PAI_C\"\necho $x $a $b":                              {"PAI_C"},
		"for ((i = 1; i < PAI_N; i++)); do echo $i; done":                             {"PAI_N"},
		"cat > f <<'END'\nprint(os.environ[\"PAI_D\"], \"$NO\")\nEND\n":               {"PAI_D"},
		"cat > f <<'END'\n(os.environ[name] for name in (\"RANK\", \"SIZE\"))\nEND\n": {"RANK", "SIZE"},
	} {
		assert.Equal(t, want, reads(commands), commands)
	}
}

// others maps variables that the job runtime doesn't set to the programs that set them.
var others = map[string]string{"LOCAL_RANK": "torchrun", "SECONDS": "bash"}

// The test uses the variables that the code of the runtime sets for a task of the job.
func TestCommandsReadOnlyVariablesThatTheRuntimeSets(t *testing.T) {
	for _, one := range catalogue(t) {
		m := submitted(t, unmasked(one.Job))
		for i, role := range m.spec.Roles {
			set := map[string]bool{}
			for _, e := range m.framework.Spec.TaskRoles[i].Task.Pod.Spec.Containers[0].Env {
				set[e.Name] = true
			}
			for _, v := range variables(t, m.spec, i) {
				set[v.Name] = true
			}
			require.True(t, set["PAI_TASK_INDEX"])
			for _, read := range reads(role.Command) {
				assert.True(t, set[read] || others[read] != "", "%s: the role %s reads %s, which the job runtime doesn't set", one.Name, role.Name, read)
			}
		}
	}
}

// variables returns the variables that the runtime sets for the first task of a role.
func variables(t *testing.T, s *spec.Spec, role int) []env.Var {
	t.Helper()
	known := &peers.Peers{}
	for r := range s.Roles {
		one := peers.Role{Name: s.Roles[r].Object}
		for i := range s.Roles[r].Instances {
			one.PodIPs = append(one.PodIPs, fmt.Sprintf("10.0.%d.%d", r, i+1))
			one.HostIPs = append(one.HostIPs, fmt.Sprintf("192.168.%d.%d", r, i+1))
		}
		known.Roles = append(known.Roles, one)
	}
	layout, err := env.New(s, known, env.Self{Role: s.Roles[role].Object, PodIP: known.Roles[role].PodIPs[0], HostIP: known.Roles[role].HostIPs[0]})
	require.NoError(t, err)
	list, notes := layout.Vars(0)
	require.Empty(t, notes)
	return list
}
