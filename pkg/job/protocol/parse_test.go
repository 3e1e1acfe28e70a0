package protocol

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/config/strictyaml"
	v1 "github.com/openpai/paictl/pkg/job/v1"
)

// head is the beginning of a job file, before the roles.
const head = `protocolVersion: 2
name: train
type: job
prerequisites:
  - {name: img, type: dockerimage, uri: "ubuntu:24.04"}
`

// small is the smallest valid job file. The role begins on line 7.
const small = head + `taskRoles:
  main:
    dockerImage: img
    resourcePerInstance: {cpu: 1, memoryMB: 512, gpu: 0}
    commands: [echo hello]
`

// role returns a job file whose role has additional fields.
func role(fields string) string {
	return small + "    " + strings.ReplaceAll(strings.TrimSpace(fields), "\n", "\n    ") + "\n"
}

// extras returns a job file with the given fields in extras.
func extras(fields string) string {
	return small + "extras:\n  " + strings.ReplaceAll(strings.TrimSpace(fields), "\n", "\n  ") + "\n"
}

func mustParse(t *testing.T, text string) *Job {
	t.Helper()
	j, findings := Parse("job.yaml", []byte(text))
	require.NoError(t, findings.Err(), text)
	require.NotNil(t, j)
	return j
}

func TestTheLeastJobGetsItsDefaults(t *testing.T) {
	j := mustParse(t, small)
	assert.Equal(t, "train", j.Name)
	assert.Equal(t, "default", j.VirtualCluster)
	assert.False(t, j.NamesVirtualCluster)
	assert.Zero(t, j.RetryCount)
	assert.Equal(t, Extras{Gang: true, Priority: "test", GracePeriodSec: 30}, j.Extras)
	assert.Equal(t, 10, j.PriorityNumber())
	require.Len(t, j.Roles, 1)
	assert.Equal(t, Role{Name: "main", Object: "main", Instances: 1, MinFailed: 1, MinSucceeded: 1, MilliCPU: 1000, MemoryMB: 512,
		Ports: []Port{{"http", 1}, {"ssh", 1}}, Image: "ubuntu:24.04", Command: "echo hello"}, j.Roles[0])
	assert.Equal(t, 1, j.Tasks())
	assert.Zero(t, j.GPUs())
}

func TestJobsAsOpenPAIWritesThemAreValid(t *testing.T) {
	files, err := filepath.Glob("testdata/*/*.yaml")
	require.NoError(t, err)
	more, err := filepath.Glob("../../../examples/jobs/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range append(files, more...) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			_, findings := Parse(file, text)
			require.Empty(t, findings)
		})
	}
}

func TestWhatIsAcceptedAsOpenPAIDoes(t *testing.T) {
	for name, text := range map[string]string{
		"the version as text":                 strings.Replace(small, "protocolVersion: 2", `protocolVersion: "2"`, 1),
		"the version as a fraction":           strings.Replace(small, "protocolVersion: 2", `protocolVersion: 2.0`, 1),
		"a version that is a number":          small + "version: 1.0\n",
		"a version of the protocol in a role": role("protocolVersion: 2"),
		"whole numbers as fractions":          role("instances: 2.0"),
		"octal numbers":                       role("instances: 0o10"),
		"no thresholds":                       role("completion: {minFailedInstances: null, minSucceededInstances: ~}"),
		"thresholds beyond the instances":     role("completion: {minFailedInstances: 9, minSucceededInstances: 9}"),
		"no ports":                            strings.Replace(small, "gpu: 0}", "gpu: 0, ports: null}", 1),
		"a port of none":                      strings.Replace(small, "gpu: 0}", "gpu: 0, ports: {x: 0}}", 1),
		"infiniband as a number":              role("extraContainerOptions: {infiniband: 1, shmMB: 0}"),
		"unknown keys in extras":              extras("submitFrom: somewhere\nisLiveDebug: [1]"),
		"unknown keys in defaults":            small + "defaults: {nobody: knows}\n",
		"keys of plugins in prerequisites":    strings.Replace(small, "prerequisites:", "prerequisites:\n  - {name: p, type: script, plugin: com.microsoft.pai.runtimeplugin.cmd, callbacks: [], failurePolicy: fail}", 1),
		"an image with all parts":             strings.Replace(small, "ubuntu:24.04", "Registry.example.org:5000/a-b/c__d.e_f:v1.0@sha256:"+strings.Repeat("0a", 32), 1),
		"an image at an address":              strings.Replace(small, "ubuntu:24.04", "[2001:db8::1]:5000/x", 1),
		"an image of this machine":            strings.Replace(small, "ubuntu:24.04", "localhost/x", 1),
		"an empty list of data":               strings.Replace(small, "prerequisites:", "prerequisites:\n  - {name: p, type: data, uri: []}", 1),
		"one name in two types":               strings.Replace(small, "prerequisites:", "prerequisites:\n  - {name: img, type: script, uri: x}", 1),
		"further keys of a deployment":        small + "deployments: [{name: d, version: 1, taskRoles: {main: {preCommands: [a]}}}]\n",
		"a deployment for no role":            small + "deployments: [{name: d, taskRoles: {nobody: {preCommands: [a]}}}]\ndefaults: {deployment: d}\n",
		"parameters of all kinds":             small + "parameters: {a: 1, b: [1, {c: d}], e: {f: ~}, g: 2020-01-01, h: yes}\n",
		"aliases and merges":                  small + "parameters: &p {a: 1}\nsecrets: {<<: *p, b: 2}\n",
		"a name of 255 characters":            strings.Replace(small, "name: train", "name: "+strings.Repeat("x", 255), 1),
		"requests that the scheduler ignores": extras("hivedScheduler: {taskRoles: {main: {skuNum: 1, skuType: ~}}}"),
		"CRLF":                                strings.ReplaceAll(small, "\n", "\r\n"),
		"a byte order mark":                   "\ufeff" + small,
	} {
		t.Run(name, func(t *testing.T) {
			_, findings := Parse("job.yaml", []byte(text))
			require.Empty(t, findings)
		})
	}
}

func TestANameThatNoKubeletReadsIsNotTheNameOfAnImage(t *testing.T) {
	for _, name := range []string{"https://docker.io/x", "docker://a", "UPPER/x", "a/Upper", "a:tag:tag", "a@sha256:12", "a@md5:" + strings.Repeat("0", 64), "a//b", "/a", "a/", "-a", "..", "a:", "a:-x", "a:" + strings.Repeat("x", 129),
		"a b", "ä", "", strings.Repeat("x", 256), "h.example:port/x", "ann:secret@h.example/x", "a..b", "a_-b"} {
		_, findings := Parse("job.yaml", []byte(strings.Replace(small, "ubuntu:24.04", name, 1)))
		if assert.Len(t, findings, 1, name) {
			assert.Equal(t, "job/image", findings[0].Rule, name)
			assert.Equal(t, "prerequisites[0].uri", findings[0].Field)
		}
	}
}

func TestEveryMistakeIsOneFindingWithPlaceAndRemedy(t *testing.T) {
	second := func(field string) string {
		return strings.Replace(small, "name: train\n", "name: train\n"+field+"\n", 1)
	}
	for name, c := range map[string]struct{ text, want string }{
		"no version":                     {strings.Replace(small, "protocolVersion: 2\n", "", 1), `1:1: protocolVersion: "protocolVersion" is missing [job/required]`},
		"version 1":                      {strings.Replace(small, "protocolVersion: 2", "protocolVersion: 1", 1), `1:18: protocolVersion: only version 2 of the protocol is supported [job/protocol-version]`},
		"version 2.1":                    {strings.Replace(small, "protocolVersion: 2", "protocolVersion: 2.1", 1), `1:18: protocolVersion: only version 2 of the protocol is supported [job/protocol-version]`},
		"a name with blanks":             {strings.Replace(small, "name: train", "name: my train", 1), `2:7: name: the name "my train" is not allowed here [job/name]`},
		"a name that is a number":        {strings.Replace(small, "name: train", "name: 12", 1), `2:7: name: expected text, found a number [yaml/type]`},
		"a long name":                    {strings.Replace(small, "name: train", "name: "+strings.Repeat("x", 256), 1), `2:7: name: the name has 256 characters [job/name]`},
		"another type":                   {strings.Replace(small, "type: job", "type: jobs", 1), `3:7: type: the type of a job file is job [job/type]`},
		"an unknown key":                 {second("jobRetry: 1"), `3:1: jobRetry: there is no key "jobRetry" here [yaml/unknown-key]`},
		"a boolean version":              {second("version: true"), `3:10: version: expected text, found true or false [yaml/type]`},
		"a number as description":        {second("description: 1"), `3:14: description: expected text, found a number [yaml/type]`},
		"parameters as a list":           {second("parameters: []"), `3:13: parameters: expected a map, found a list [yaml/type]`},
		"secrets as text":                {second("secrets: '******'"), `3:10: secrets: expected a map, found text [yaml/type]`},
		"a masked secret":                {second("secrets: {a: {b: '******'}}"), `3:18: secrets.a.b: the file is a copy from which the secrets were removed [job/masked]`},
		"a masked address":               {strings.Replace(small, "prerequisites:", "prerequisites:\n  - {name: p, type: data, uri: ['******']}", 1), `5:33: prerequisites[0].uri[0]: the file is a copy from which the secrets were removed [job/masked]`},
		"negative retries":               {second("jobRetryCount: -2"), `3:16: jobRetryCount: -2 is not possible here [job/range]`},
		"a key twice":                    {second("name: again"), `3:1: name: the key is already set on line 2 [yaml/duplicate-key]`},
		"an unknown tag":                 {second("description: !ruby x"), `3:14: a tag (!...) that is not supported [yaml/tag]`},
		"no prerequisites":               {second("deployments: []"), `3:14: deployments: the list is empty [job/empty]`},
		"no role":                        {head + "taskRoles: {}\n", `6:12: taskRoles: the job has no role [job/empty]`},
		"roles as a list":                {head + "taskRoles: []\n", `6:12: taskRoles: expected a map, found a list [yaml/type]`},
		"no roles":                       {head, `1:1: taskRoles: "taskRoles" is missing [job/required]`},
		"a role's name":                  {strings.Replace(small, "  main:", "  main-1:", 1), `7:3: taskRoles.main-1: the name of a role is not allowed [job/name]`},
		"an empty role":                  {head + "taskRoles:\n  main:\n", `7:8: taskRoles.main: expected a map, and the value is empty [yaml/type]`},
		"no instance":                    {role("instances: 0"), `11:16: taskRoles.main.instances: 0 is not possible here [job/range]`},
		"memory with a leading 0":        {strings.Replace(small, "memoryMB: 512", "memoryMB: 010000", 1), `9:45: taskRoles.main.resourcePerInstance.memoryMB: a number with a leading 0, or with _, has another value in another version of YAML [yaml/number]`},
		"memory that can't be octal":     {strings.Replace(small, "memoryMB: 512", "memoryMB: 08192", 1), `9:45: taskRoles.main.resourcePerInstance.memoryMB: a number with a leading 0, or with _, has another value in another version of YAML [yaml/number]`},
		"instances with a leading 0":     {role("instances: 010"), `11:16: taskRoles.main.instances: a number with a leading 0, or with _, has another value in another version of YAML [yaml/number]`},
		"too fine a part of a processor": {strings.Replace(small, "cpu: 1", "cpu: 0.0001", 1), `9:32: taskRoles.main.resourcePerInstance.cpu: 0.0001 has more than three decimals [job/range]`},
		"half an instance":               {role("instances: 1.5"), `11:16: taskRoles.main.instances: expected a whole number [yaml/type]`},
		"instances as text":              {role("instances: '1'"), `11:16: taskRoles.main.instances: expected a number, found text [yaml/type]`},
		"instances left empty":           {role("instances:"), `11:15: taskRoles.main.instances: expected a number, and the value is empty [yaml/type]`},
		"far too many instances":         {role("instances: 10001"), `11:16: taskRoles.main.instances: 10001 is not possible here [job/range]`},
		"a threshold":                    {role("completion: {minFailedInstances: -2}"), `11:38: taskRoles.main.completion.minFailedInstances: -2 is not possible here [job/range]`},
		"an unknown threshold":           {role("completion: {minFailed: 1}"), `11:18: taskRoles.main.completion.minFailed: there is no key "minFailed" here [yaml/unknown-key]`},
		"no commands":                    {strings.Replace(small, "    commands: [echo hello]\n", "", 1), `7:3: taskRoles.main.commands: "commands" is missing [job/required]`},
		"an empty list of commands":      {strings.Replace(small, "[echo hello]", "[]", 1), `10:15: taskRoles.main.commands: the list is empty [job/empty]`},
		"one command as text":            {strings.Replace(small, "[echo hello]", "echo hello", 1), `10:15: taskRoles.main.commands: expected a list, found text [yaml/type]`},
		"a number as command":            {strings.Replace(small, "[echo hello]", "[sleep, 10]", 1), `10:23: taskRoles.main.commands[1]: expected text, found a number [yaml/type]`},
		"an unknown image":               {strings.Replace(small, "dockerImage: img", "dockerImage: imgg", 1), `8:18: taskRoles.main.dockerImage: there is no prerequisite imgg of the type dockerimage [job/unknown-prerequisite]`},
		"an unknown script":              {role("script: s"), `11:13: taskRoles.main.script: there is no prerequisite s of the type script [job/unknown-prerequisite]`},
		"an unknown prerequisite":        {role("prerequisites: [x]"), `11:21: taskRoles.main.prerequisites[0]: there is no prerequisite x [job/unknown-prerequisite]`},
		"no resources":                   {strings.Replace(small, "gpu: 0", "gpus: 0", 1), `9:5: taskRoles.main.resourcePerInstance.gpu: "gpu" is missing [job/required]`},
		"negative resources":             {strings.Replace(small, "gpu: 0", "gpu: -1", 1), `9:55: taskRoles.main.resourcePerInstance.gpu: -1 is not possible here [job/range]`},
		"no port":                        {strings.Replace(small, "gpu: 0", "gpu: 0, ports: {}", 1), `9:65: taskRoles.main.resourcePerInstance.ports: the map is empty [job/empty]`},
		"a label":                        {strings.Replace(small, "gpu: 0", "gpu: 0, ports: {a-b: 1}", 1), `9:71: taskRoles.main.resourcePerInstance.ports.a-b: the label of a port is not allowed [job/name]`},
		"an unknown option":              {role("extraContainerOptions: {shmGB: 1}"), `11:29: taskRoles.main.extraContainerOptions.shmGB: there is no key "shmGB" here [yaml/unknown-key]`},
		"commands and exec":              {role("exec: [sh]"), `11:11: taskRoles.main.exec: the role has both commands and exec [job/two-commands]`},
		"two prerequisites":              {strings.Replace(small, "prerequisites:", "prerequisites:\n  - {name: img, type: dockerimage, uri: x}", 1), `6:12: prerequisites[1].name: there are two prerequisites img of the type dockerimage [job/duplicate]`},
		"a type of prerequisite":         {strings.Replace(small, "prerequisites:", "prerequisites:\n  - {name: i, type: image, uri: x}", 1), `5:21: prerequisites[0].type: there is no type image [job/type]`},
		"an image without a name":        {strings.Replace(small, "prerequisites:", "prerequisites:\n  - {name: i, type: dockerimage}", 1), `5:5: prerequisites[0].uri: "uri" is missing [job/required]`},
		"an unknown key of an image":     {strings.Replace(small, "prerequisites:", "prerequisites:\n  - {name: i, type: dockerimage, uri: x, url: y}", 1), `5:42: prerequisites[0].url: there is no key "url" here [yaml/unknown-key]`},
		"data as text":                   {strings.Replace(small, "prerequisites:", "prerequisites:\n  - {name: i, type: data, uri: x}", 1), `5:32: prerequisites[0].uri: expected a list, found text [yaml/type]`},
		"an image with a reference":      {strings.Replace(small, "ubuntu:24.04", "ubuntu:<% $parameters.x %>", 1), `5:41: prerequisites[0].uri: references can't be used in the name of an image [job/reference]`},
		"a reference as a number":        {role("instances: <% $parameters.workers %>"), `11:16: taskRoles.main.instances: expected a number, found a reference; references can't be used here [job/reference]`},
		"a quoted reference as GPUs":     {strings.Replace(small, "gpu: 0", "gpu: '<% $parameters.gpus %>'", 1), `9:55: taskRoles.main.resourcePerInstance.gpu: expected a number, found a reference; references can't be used here [job/reference]`},
		"a reference as a name":          {strings.Replace(small, "name: train", "name: <% $parameters.x %>", 1), `2:7: name: references can't be used here [job/reference]`},
		"a reference as a type":          {strings.Replace(small, "type: job", "type: <% $parameters.x %>", 1), `3:7: type: references can't be used here [job/reference]`},
		"a reference as a vc":            {second("defaults: {virtualCluster: <% $parameters.vc %>}"), `3:28: defaults.virtualCluster: references can't be used here [job/reference]`},
		"a reference as an image's name": {strings.Replace(small, "dockerImage: ", "dockerImage: <% $parameters.x %> #", 1), `8:18: taskRoles.main.dockerImage: references can't be used here [job/reference]`},
		"a reference as a priority":      {extras("hivedScheduler: {jobPriorityClass: <% $parameters.x %>}"), `12:38: extras.hivedScheduler.jobPriorityClass: references can't be used here [job/reference]`},
		"a reference as a type of GPU":   {extras("hivedScheduler: {taskRoles: {main: {skuType: <% $parameters.x %>}}}"), `12:48: extras.hivedScheduler.taskRoles.main.skuType: references can't be used here [job/reference]`},
		"a reference as a storage":       {extras("storages: [{name: <% $parameters.x %>}]"), `12:21: extras.storages[0].name: references can't be used here [job/reference]`},
		"a reference as a role's name":   {strings.Replace(small, "  main:", "  <% $parameters.x %>:", 1), `7:3: taskRoles["<% $parameters.x %>"]: references can't be used here [job/reference]`},
		"a reference as a mount":         {extras("storages: [{name: a, mountPath: /<% $parameters.x %>}]"), `12:35: extras.storages[0].mountPath: references can't be used here [job/reference]`},
		"a reference as a job to await":  {extras("after: [<% $parameters.x %>]"), `12:11: extras.after[0]: references can't be used here [job/reference]`},
		"a reference in a shell":         {role("shell: [<% $parameters.x %>, -c]"), `11:13: taskRoles.main.shell[0]: references can't be used here [job/reference]`},
		"a reference as a list":          {strings.Replace(small, "[echo hello]", "<% $parameters.commands %>", 1), `10:15: taskRoles.main.commands: expected a list, found a reference; references can't be used here [job/reference]`},
		"an unknown deployment":          {small + "defaults: {deployment: prod}\n", `11:24: defaults.deployment: there is no deployment prod [job/unknown-deployment]`},
		"two deployments":                {small + "deployments:\n- {name: d, taskRoles: {main: {}}}\n- {name: d, taskRoles: {main: {}}}\n", `13:10: deployments[1].name: there are two deployments d [job/duplicate]`},
		"a deployment without roles":     {small + "deployments: [{name: d}]\n", `11:15: deployments[0].taskRoles: "taskRoles" is missing [job/required]`},
		"empty preCommands":              {small + "deployments: [{name: d, taskRoles: {main: {preCommands: []}}}]\n", `11:57: deployments[0].taskRoles.main.preCommands: the list is empty [job/empty]`},
		"an empty virtual cluster":       {small + "defaults: {virtualCluster: ''}\n", `11:28: defaults.virtualCluster: the name is empty [job/name]`},
		"a priority class":               {extras("hivedScheduler: {jobPriorityClass: high}"), `12:38: extras.hivedScheduler.jobPriorityClass: there is no priority class high [job/priority]`},
		"a role of the scheduler":        {extras("hivedScheduler: {taskRoles: {man: {}}}"), `12:32: extras.hivedScheduler.taskRoles.man: there is no role man [job/unknown-role]`},
		"a type and a pinned cell":       {extras("hivedScheduler: {taskRoles: {main: {skuType: a, pinnedCellId: b}}}"), `12:38: extras.hivedScheduler.taskRoles.main: the role has both skuType and pinnedCellId [job/cells]`},
		"plugins as a map":               {extras("com.microsoft.pai.runtimeplugin: {plugin: ssh}"), `12:36: extras["com.microsoft.pai.runtimeplugin"]: expected a list, found a map [yaml/type]`},
		"an unknown plugin":              {extras("com.microsoft.pai.runtimeplugin: [{plugin: sshd}]"), `12:46: extras["com.microsoft.pai.runtimeplugin"][0].plugin: the runtime has no plugin sshd [job/plugin]`},
		"a failure policy":               {extras("com.microsoft.pai.runtimeplugin: [{plugin: ssh, failurePolicy: retry}]"), `12:66: extras["com.microsoft.pai.runtimeplugin"][0].failurePolicy: a plugin's failure ends the task, or is ignored [job/plugin]`},
		"two ways of commands":           {extras("com.microsoft.pai.runtimeplugin: [{plugin: cmd, parameters: {preCommands: [a], callbacks: []}}]"), `12:93: extras["com.microsoft.pai.runtimeplugin"][0].parameters.callbacks: the plugin cmd has both callbacks and preCommands or postCommands [job/plugin]`},
		"an event":                       {extras("com.microsoft.pai.runtimeplugin: [{plugin: cmd, parameters: {callbacks: [{event: start, commands: [a]}]}}]"), `12:84: extras["com.microsoft.pai.runtimeplugin"][0].parameters.callbacks[0].event: there is no event start [job/plugin]`},
		"no repository":                  {extras("com.microsoft.pai.runtimeplugin: [{plugin: git, parameters: {repo: x}}]"), `12:51: extras["com.microsoft.pai.runtimeplugin"][0].parameters.repo_uri: "repo_uri" is missing [job/required]`},
		"a port of tensorboard":          {extras("com.microsoft.pai.runtimeplugin: [{plugin: tensorboard, parameters: {port: '70000'}}]"), `12:78: extras["com.microsoft.pai.runtimeplugin"][0].parameters.port: this number is not possible here [job/range]`},
		"a time-out of ssh":              {extras("com.microsoft.pai.runtimeplugin: [{plugin: ssh, parameters: {sshbarrierTimeout: soon, jobssh: maybe}}]"), `12:83: extras["com.microsoft.pai.runtimeplugin"][0].parameters.sshbarrierTimeout: this number is not possible here [job/range]`},
		"commands of a prerequisite":     {strings.Replace(small, "prerequisites:", "prerequisites:\n  - {name: p, type: script, plugin: com.microsoft.pai.runtimeplugin.cmd, preCommands: [1]}", 1), `5:88: prerequisites[0].preCommands[0]: expected text, found a number [yaml/type]`},
		"a storage's name":               {extras("storages: [{name: A/B}]"), `12:14: extras.storages[0]: "A/B" is not the name of a storage [job/storage]`},
		"a storage's path":               {extras("storages: [{name: a, mountPath: data}]"), `12:14: extras.storages[0]: a storage can't be mounted at data [job/storage]`},
		"a storage over the runtime":     {extras("storages: [{name: a, mountPath: /usr/local/pai/}]"), `12:14: extras.storages[0]: the runtime needs /usr/local/pai itself [job/storage]`},
		"two storages at one path":       {extras("storages: [{name: a}, {name: b, mountPath: /mnt/a}]"), `12:25: extras.storages[1]: a and b are both mounted at /mnt/a [job/storage]`},
		"to wait for itself":             {extras("after: [train]"), `12:11: extras.after[0]: "train" is not another job [job/after]`},
		"to wait for one job twice":      {extras("after: [a, b, {job: a, when: ended}]"), `12:23: extras.after[2].job: "a" is listed twice [job/after]`},
		"to wait for no name":            {extras("after: [bob/a b]"), `12:11: extras.after[0]: "bob/a b" is not the name of a job [job/after]`},
		"to wait for two users' job":     {extras("after: [a/b/c]"), `12:11: extras.after[0]: "a/b/c" is not the name of a job [job/after]`},
		"to wait for an unknown end":     {extras("after: [{job: a, when: done}]"), `12:26: extras.after[0].when: there is no "done" [job/after]`},
		"to wait for nothing":            {extras("after: [{when: ended}]"), `12:11: extras.after[0].job: "job" is missing [job/required]`},
		"to wait for a number":           {extras("after: [1]"), `12:11: extras.after[0]: expected text, found a number [yaml/type]`},
		"a grace period":                 {extras("gracePeriodSec: 100000"), `12:19: extras.gracePeriodSec: 100000 is not possible here [job/range]`},
		"the machine's network":          {extras("hostNetwork: please"), `12:16: extras.hostNetwork: expected true or false, found text [yaml/type]`},
		"a folder for checkpoints":       {extras("checkpointDir: data"), `12:18: extras.checkpointDir: the folder is not an absolute path [job/path]`},
		"two documents":                  {small + "---\n" + small, `11:1: the file holds several documents [yaml/several-documents]`},
		"another change of state":        {extras("jobStatusChangeNotification: {finished: true}"), `12:33: extras.jobStatusChangeNotification.finished: there is no key "finished" here [yaml/unknown-key]`},
		"a change of state as text":      {extras(`jobStatusChangeNotification: {failed: "yes"}`), `12:41: extras.jobStatusChangeNotification.failed: expected true or false, found text [yaml/type]`},
		"nothing":                        {"", `1:1: the file is empty [yaml/empty]`},
		"a list":                         {"- a\n", `1:1: expected a map, found a list [yaml/type]`},
		"text":                           {"hello\n", `1:1: expected a map, found text [yaml/type]`},
		"a parameter that isn't there":   {strings.Replace(small, "[echo hello]", "\n      - |\n        true\n        echo <% $parameters.x %>", 1), `13:14: taskRoles.main.commands[0]: <% $parameters.x %> is not defined: the file has no parameters [job/reference]`},
	} {
		t.Run(name, func(t *testing.T) {
			j, findings := Parse("job.yaml", []byte(c.text))
			require.NotEmpty(t, findings)
			assert.Nil(t, j)
			var got []string
			for _, f := range findings {
				got = append(got, strings.TrimPrefix(f.String(), "job.yaml:"))
			}
			assert.Contains(t, got, c.want)
			assert.LessOrEqual(t, len(findings), 3, "one mistake is no long list: %v", got)
		})
	}
}

func TestQuotesAreOnlyNamedWhereThereAreSome(t *testing.T) {
	for instances, remedy := range map[string]string{
		"'1'": "remove the quotes, if that is what you meant", "many": "write a number there", "[1]": "write a number there", "1.5": "write a number without a fraction",
	} {
		_, findings := Parse("job.yaml", []byte(role("instances: "+instances)))
		require.Len(t, findings, 1, instances)
		assert.Equal(t, remedy, findings[0].Remedy, instances)
	}
}

func TestAllMistakesAreReportedAtOnceInTheFilesOrder(t *testing.T) {
	_, findings := Parse("job.yaml", []byte(`protocolVersion: 3
name: a b
type: job
taskRoles:
  main:
    instances: 0
    dockerImage: x
    resourcePerInstance: {cpu: 1, gpu: 0}
    commands: ["<% $parameters.a %>"]
`))
	var lines []int
	for _, f := range findings {
		lines = append(lines, f.Line)
		assert.NotEmpty(t, f.Remedy, f.String())
	}
	assert.Equal(t, []int{1, 2, 6, 7, 8, 9}, lines)
}

func TestAFileThatIsTooLongIsRefusedUnread(t *testing.T) {
	for name, text := range map[string]string{
		"a list": "name: [" + strings.Repeat("a,", 90_000) + "]\n", "lines": strings.Repeat("a\n", 90_000), "maps": "name: [" + strings.Repeat("{},", 60_000) + "]\n",
		"letters of a syntax error": "[" + strings.Repeat("?,", 90_000),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, findings := Parse("job.yaml", []byte(text))
		runtime.ReadMemStats(&after)
		require.Len(t, findings, 1, name)
		assert.Equal(t, "yaml/size", findings[0].Rule, name)
		assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<20), "%s: it is counted before anything is made of it", name)
	}
	_, findings := Parse("job.yaml", []byte(strings.Repeat("[", MaxBytes+1)))
	require.Len(t, findings, 1)
	assert.Equal(t, "job/size", findings[0].Rule)
	assert.Contains(t, findings[0].Remedy, "storage")
}

func TestAliasesThatMultiplyAreRefused(t *testing.T) {
	text := small + "parameters:\n  a: &a [x, x, x, x, x, x, x, x, x, x]\n"
	for c := 'b'; c < 'h'; c++ {
		text += fmt.Sprintf("  %c: &%c [%s]\n", c, c, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*%c, ", c-1), 10), ", "))
	}
	_, findings := Parse("job.yaml", []byte(text))
	require.Error(t, findings.Err())
	assert.Equal(t, "yaml/size", findings[0].Rule)
}

func TestAJobHasALimitOfRolesAndTasks(t *testing.T) {
	many := head + "taskRoles:\n"
	for i := range MaxRoles + 1 {
		many += fmt.Sprintf("  r%d: {dockerImage: img, resourcePerInstance: {cpu: 1, memoryMB: 1, gpu: 0}, commands: [a]}\n", i)
	}
	_, findings := Parse("job.yaml", []byte(many))
	require.Error(t, findings.Err())
	assert.Equal(t, "job/range", findings[0].Rule)

	two := strings.Replace(role("instances: 6000"), "  main:", "  a:", 1)
	two += strings.TrimPrefix(strings.Replace(role("instances: 6000"), "  main:", "  b:", 1), head+"taskRoles:\n")
	_, findings = Parse("job.yaml", []byte(two))
	require.Len(t, findings, 1)
	assert.Contains(t, findings[0].Message, "12000 tasks")
}

func TestCompletionHasOpenPAIsDefaults(t *testing.T) {
	for text, want := range map[string][2]int{
		"instances: 4": {1, 4},
		"instances: 4\ncompletion: {minFailedInstances: 0, minSucceededInstances: 0}":   {1, 4},
		"instances: 4\ncompletion: {minFailedInstances: ~, minSucceededInstances: ~}":   {1, 4},
		"instances: 4\ncompletion: {minFailedInstances: -1, minSucceededInstances: -1}": {-1, -1},
		"instances: 4\ncompletion: {minFailedInstances: 2, minSucceededInstances: 1}":   {2, 1},
	} {
		r := mustParse(t, role(text)).Roles[0]
		assert.Equal(t, want, [2]int{r.MinFailed, r.MinSucceeded}, text)
	}
}

func TestADeploymentAddsItsCommands(t *testing.T) {
	j := mustParse(t, small+`deployments:
  - name: prod
    taskRoles:
      main:
        preCommands: ["  one", "two <% $parameters.x %>"]
        postCommands: [last]
  - name: other
    taskRoles: {main: {preCommands: [no]}}
defaults: {deployment: prod, virtualCluster: vc1}
parameters: {x: 7}
`)
	assert.Equal(t, "one\ntwo 7\necho hello\nlast", j.Roles[0].Command.Reveal())
	assert.Equal(t, "vc1", j.VirtualCluster)
	assert.True(t, j.NamesVirtualCluster)
}

func TestPluginsRunInTheirOrder(t *testing.T) {
	j := mustParse(t, strings.Replace(role("prerequisites: [second, first]"), "prerequisites:\n", `prerequisites:
  - {name: first, type: script, uri: a, plugin: com.microsoft.pai.runtimeplugin.cmd, preCommands: ["echo <% $parameters.x %>"]}
  - {name: second, type: data, plugin: com.microsoft.pai.runtimeplugin.git, failurePolicy: ignore, repo_uri: "https://<% $secrets.token %>@example.com"}
`, 1)+`extras:
  com.microsoft.pai.runtimeplugin:
    - {plugin: ssh, parameters: {jobssh: true, sshbarrierTimeout: 60}, taskroles: [main]}
    - {plugin: tensorboard, taskroles: [nobody]}
    - {plugin: tensorboard, parameters: {port: 6006, logdir: {default: "/mnt/<% $parameters.x %>"}}}
parameters: {x: 7}
secrets: {token: "a&b'c"}
`)
	var got []string
	for _, p := range j.Roles[0].Plugins {
		got = append(got, fmt.Sprintf("%s %v %s", p.Name, p.IgnoreFailure, p.Parameters.Reveal()))
	}
	assert.Equal(t, []string{
		`git true {"name":"second","repo_uri":"https://a\u0026b'c@example.com"}`,
		`cmd false {"name":"first","preCommands":["echo 7"],"uri":"a"}`,
		`ssh false {"jobssh":true,"sshbarrierTimeout":60}`,
		`tensorboard false {"logdir":{"default":"/mnt/7"},"port":6006}`,
	}, got)
}

func TestExtrasAreRead(t *testing.T) {
	j := mustParse(t, extras(`gangAllocation: false
hostNetwork: true
gracePeriodSec: 5
maxDurationSec: 3600
checkpointDir: /mnt/a/<% $parameters.dir %>
storages: [{name: a}, {name: b, mountPath: /data}]
jobStatusChangeNotification: {failed: true, running: true, stopped: false}
hivedScheduler:
  jobPriorityClass: prod
  lazyPreemptionEnable: true
  taskRoles: {main: {skuType: A100, affinityGroupName: near}}
`)+"parameters: {dir: checkpoints}\n")
	yes := true
	assert.Equal(t, Extras{Priority: "prod", LazyPreemption: &yes, HostNetwork: true, GracePeriodSec: 5, MaxDurationSec: 3600, CheckpointDir: "/mnt/a/checkpoints",
		Storages: []Storage{{"a", "/mnt/a"}, {"b", "/data"}}, Notify: []v1.NotifyState{v1.NotifyRunning, v1.NotifyFailed}, SelectsNotices: true}, j.Extras)
	assert.Equal(t, 100, j.PriorityNumber())
	assert.Equal(t, []string{"A100", "near"}, []string{j.Roles[0].SKU, j.Roles[0].Affinity})
}

func TestDoubtfulExtrasAreWarnedOf(t *testing.T) {
	for text, want := range map[string]string{
		`gangAllocation: "false"`:             "tasks start together",
		"gangAlocation: false":                `did you mean "gangAllocation"?`,
		"gangAllocation: <% $parameters.x %>": "references can't be used here; tasks start together",
		"storages: [{mountPath: /a}]":         "the entry has no name",
		"com.microsoft.pai.runtimeplugin: [{plugin: ssh, taskroles: [nobody]}]": "there is no role nobody",
	} {
		j, findings := Parse("job.yaml", []byte(extras(text)))
		require.NoError(t, findings.Err())
		require.Len(t, findings.Warnings(), 1, text)
		assert.Contains(t, findings[0].String()+findings[0].Remedy, want)
		assert.True(t, j.Extras.Gang)
	}
}

func TestStoragesOfOlderJobs(t *testing.T) {
	teamwise := func(parameters string) string {
		return extras("com.microsoft.pai.runtimeplugin: [{plugin: teamwise_storage" + parameters + "}]")
	}
	j := mustParse(t, teamwise(", parameters: {storageConfigNames: [a, b]}"))
	assert.Equal(t, []Storage{{"a", "/mnt/a"}, {"b", "/mnt/b"}}, j.Extras.Storages)
	assert.False(t, j.Extras.DefaultStorages)
	assert.True(t, mustParse(t, teamwise("")).Extras.DefaultStorages)
	assert.True(t, mustParse(t, extras("storages: []")).Extras.DefaultStorages)
	assert.False(t, mustParse(t, small).Extras.DefaultStorages)
}

func TestRolesOfOneGangShareTheirType(t *testing.T) {
	two := strings.Replace(small, "taskRoles:\n", "taskRoles:\n  ps: {dockerImage: img, resourcePerInstance: {cpu: 1, memoryMB: 1, gpu: 0}, commands: [a]}\n", 1)
	skus := func(text string) []string {
		var out []string
		for _, r := range mustParse(t, two+"extras:\n  "+text+"\n").Roles {
			out = append(out, r.SKU+r.PinnedCell)
		}
		return out
	}
	assert.Equal(t, []string{"A100", "A100"}, skus("hivedScheduler: {taskRoles: {main: {skuType: A100}}}"))
	assert.Equal(t, []string{"A100", "A100"}, skus("hivedScheduler: {taskRoles: {main: {gpuType: A100, affinityGroupName: g}, ps: {affinityGroupName: g}}}"))
	assert.Equal(t, []string{"", "A100"}, skus("{gangAllocation: false, hivedScheduler: {taskRoles: {main: {skuType: A100}}}}"))
	assert.Equal(t, []string{"V100", "A100"}, skus("hivedScheduler: {taskRoles: {main: {skuType: A100}, ps: {skuType: V100}}}"))
	assert.Equal(t, []string{"", "pin"}, skus("hivedScheduler: {taskRoles: {main: {pinnedCellId: pin}}}"))
	_, findings := Parse("job.yaml", []byte(two+"extras:\n  hivedScheduler: {taskRoles: {main: {skuType: A100, affinityGroupName: g}, ps: {skuType: V100, affinityGroupName: g}}}\n"))
	require.Len(t, findings, 1)
	assert.Contains(t, findings[0].Message, "the roles ps and main of affinity group g")
}

func TestAnImageIsLoggedInToOnlyWithALogin(t *testing.T) {
	j := mustParse(t, strings.Replace(small, "prerequisites:\n", `prerequisites:
  - {name: private, type: dockerimage, uri: r.example.com/a, auth: {username: u, password: "<% $secrets.p %>", registryuri: r.example.com}}
  - {name: empty, type: dockerimage, uri: b, auth: {}}
  - {name: hub, type: dockerimage, uri: c, auth: {username: u, password: p}}
`, 1)+"secrets: {p: \"x<>&'\"}\n")
	require.Len(t, j.Images, 4)
	assert.Equal(t, &Auth{Username: "u", Password: "x<>&'", Registry: "r.example.com"}, j.Images[0].Auth)
	assert.Nil(t, j.Images[1].Auth)
	assert.Equal(t, "https://index.docker.io/v1/", j.Images[2].Auth.Registry)
	assert.Equal(t, []bool{false, false, false, true}, []bool{j.Images[0].Used, j.Images[1].Used, j.Images[2].Used, j.Images[3].Used})
}

func TestNothingThatIsPrintedOfAJobHasItsSecrets(t *testing.T) {
	j := mustParse(t, strings.Replace(small, "echo hello", "echo <% $secrets.p %>", 1)+"secrets: {p: hunter2}\nextras: {com.microsoft.pai.runtimeplugin: [{plugin: cmd, parameters: {preCommands: ['<% $secrets.p %>']}}]}\n")
	assert.Equal(t, "echo hunter2", j.Roles[0].Command.Reveal())
	for _, format := range []string{"%v", "%+v", "%#v", "%s"} {
		assert.NotContains(t, fmt.Sprintf(format, j), "hunter2")
		assert.NotContains(t, fmt.Sprintf(format, j.Roles), "hunter2")
	}
}

func TestObjectNamesNeverCollide(t *testing.T) {
	long := strings.Repeat("a", 70)
	for _, c := range []struct{ roles, want []string }{
		{[]string{"worker", "ps_server"}, []string{"worker", "psserver"}},
		{[]string{"Worker", "worker", "WORKER"}, []string{"worker", "worker2", "worker3"}},
		{[]string{"a_b", "ab", "ab2", "A2B"}, []string{"ab", "ab3", "ab2", "a2b"}},
		{[]string{"_", "__", "role", "role2"}, []string{"role3", "role4", "role", "role2"}},
		{[]string{long, long + "b"}, []string{long[:50], long[:49] + "2"}},
	} {
		assert.Equal(t, c.want, objectNames(c.roles))
	}
}

func TestRolesKeepTheirOrderAndSpelling(t *testing.T) {
	text := head + "taskRoles:\n"
	want := []string{"zeta", "Alpha", "_x", "ps_server"}
	for _, name := range want {
		text += "  " + name + ": {dockerImage: img, resourcePerInstance: {cpu: 1, memoryMB: 1, gpu: 0}, commands: [a]}\n"
	}
	j := mustParse(t, text)
	assert.Equal(t, want, slices.Collect(func(yield func(string) bool) {
		for _, r := range j.Roles {
			if !yield(r.Name) {
				return
			}
		}
	}))
}

func TestAFindingOfOthersHasItsPlace(t *testing.T) {
	j := mustParse(t, small)
	f := j.Finding(strictyaml.Path{"taskRoles", "main", "resourcePerInstance", "gpu"}, "r", "m", "x")
	assert.Equal(t, []int{9, 55}, []int{f.Line, f.Column})
	f = j.Finding(strictyaml.Path{"taskRoles", "main", "instances"}, "r", "m", "x")
	assert.Equal(t, []int{7, 3}, []int{f.Line, f.Column}, "what isn't there is looked for at the key above")
	f = j.Finding(strictyaml.Path{"defaults", "virtualCluster"}, "r", "m", "x")
	assert.Equal(t, []int{1, 1}, []int{f.Line, f.Column})
}

// OpenPAI accepts and ignores unknown keys, but most of them are mistakes.
func TestKeysThatNothingReadsAreToldOf(t *testing.T) {
	for name, test := range map[string]struct{ text, says string }{
		"of a login":  {strings.Replace(small, `uri: "ubuntu:24.04"`, `uri: "ubuntu:24.04", auth: {username: u, password: p, registryUri: r}`, 1), `"registryUri" is not used here`},
		"of a script": {strings.Replace(small, "prerequisites:", "prerequisites:\n  - {name: p, type: script, uri: u, url: v}", 1), `"url" is not used here`},
	} {
		t.Run(name, func(t *testing.T) {
			_, findings := Parse("job.yaml", []byte(test.text))
			require.Empty(t, findings.Errors())
			require.Len(t, findings.Warnings(), 1)
			assert.Equal(t, test.says, findings.Warnings()[0].Message)
			assert.Contains(t, findings.Warnings()[0].Remedy, "did you mean")
		})
	}
}

func TestJobsToStartAfter(t *testing.T) {
	j, findings := Parse("job.yaml", []byte(extras("after: [a, bob/b, {job: c, when: ended}, {job: d, when: succeeded}, {job: e}]")))
	require.Empty(t, findings)
	assert.Equal(t, []After{{Job: "a"}, {Job: "bob/b"}, {Job: "c", Ended: true}, {Job: "d"}, {Job: "e"}}, j.Extras.After)
	j, findings = Parse("job.yaml", []byte(extras("after: a")))
	require.Empty(t, findings)
	assert.Equal(t, []After{{Job: "a"}}, j.Extras.After)
}
