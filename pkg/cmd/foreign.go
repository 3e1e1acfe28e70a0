package cmd

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// foreignFlags maps a command to flags that users know from other programs. The value is the advice for the user.
var foreignFlags = map[string]map[string]string{
	"job submit": {
		"--vc":        inDefaults,
		"--partition": inDefaults,
		"-p":          inDefaults,
		"--priority":  "the job file names its priority: extras.hivedScheduler.jobPriorityClass",
		"--detach":    "submit returns at once without --watch and --wait",
		"-d":          "submit returns at once without --watch and --wait",
		"--gpus":      inResources,
		"--gres":      inResources,
		"--cpus":      inResources,
		"--memory":    inResources,
		"--mem":       inResources,
		"--instances": "the job file says it: taskRoles.ROLE.instances",
		"--ntasks":    "the job file says it: taskRoles.ROLE.instances",
		"--nodes":     "the job file says it: taskRoles.ROLE.instances",
		"--time":      "the job file says it: extras.maxDurationSec",
		"--array":     "several jobs of one file: --sweep NAME=VALUE,VALUE, with <% $parameters.NAME %> in its commands",
	},
	"job run": {
		"--rm":       "it isn't needed: a finished job uses no resources",
		"--shm-size": "a job file says it (--dry-run prints one): taskRoles.ROLE.extraContainerOptions.shmMB",
		"--array":    "several jobs of one file: paictl job submit FILE --sweep NAME=VALUE,VALUE",
	},
	"job delete": {
		"-f":      "name the job instead of its file",
		"--force": "delete stops a job that runs; --yes answers the question",
		"--all":   "name the jobs; paictl job stop --all stops all of yours",
	},
	"job list": {"--me": "without --user and --all-users these are your jobs"},
}

const (
	inDefaults  = "the job file names its virtual cluster: defaults.virtualCluster"
	inResources = "the job file says it: taskRoles.ROLE.resourcePerInstance"
)

// sameFlags maps flags of kubectl, Docker and Slurm to flags of paictl with the same meaning. A command may have one of the listed flags.
var sameFlags = map[string][]string{
	"-a": {"all-users"}, "--all": {"all-users"}, "--all-namespaces": {"all-users"},
	"--mem": {"memory"}, "-m": {"memory"}, "--mem-per-node": {"memory"},
	"-c": {"cpus", "role"}, "--cpus-per-task": {"cpus"}, "--cpu": {"cpus"}, "--container": {"role"},
	"-n": {"instances"}, "-N": {"instances"}, "--ntasks": {"instances"}, "--nodes": {"instances"}, "--replicas": {"instances", "tasks"},
	"--gres": {"gpus"}, "-G": {"gpus"}, "--gpus-per-node": {"gpus"}, "--gpus-per-task": {"gpus"},
	"-p": {"vc", "previous"}, "--partition": {"vc"}, "-q": {"vc"}, "--qos": {"vc"}, "--queue": {"vc"},
	"-J": {"name"}, "--job-name": {"name"}, "--time": {"max-duration"}, "--time-limit": {"max-duration"},
	"-v": {"storage"}, "--volume": {"storage"}, "--mount": {"storage"},
	"-t": {"timestamps", "state"}, "--states": {"state"}, "--dependency": {"after"}, "--tail-lines": {"tail"}, "--lines": {"tail"},
}

// likeIt returns the flag of the command c that has the same meaning as the given flag of another program. It returns "" if c has no such flag.
func likeIt(c *cobra.Command, name string) string {
	for _, own := range sameFlags[name] {
		if c.Flags().Lookup(own) != nil {
			return "--" + own
		}
	}
	return ""
}

// foreignCommands maps commands of other programs without a counterpart in paictl to the way to get the same result.
var foreignCommands = map[string]string{
	"edit": "jobs don't change after their submission: paictl job clone NAME -o job.yaml writes a file to edit",
}

// nouns maps the kinds of objects on kubectl's command line to the groups of commands for the same objects.
var nouns = map[string]string{
	"node": "node", "nodes": "node", "no": "node", "pod": "job", "pods": "job", "po": "job", "job": "job", "jobs": "job",
	"service": "service", "services": "service", "svc": "service", "deploy": "service", "deployment": "service", "deployments": "service",
	"user": "user", "users": "user", "group": "group", "groups": "group", "queue": "vc", "partition": "vc", "partitions": "vc",
}

// ofNoun returns the command of paictl that corresponds to a verb and a noun, as in "get nodes" or "describe node gpu-1".
func ofNoun(root *cobra.Command, verb string, args []string) []string {
	if len(args) == 0 {
		return nil
	}
	noun, _, named := strings.Cut(args[0], "/")
	i := slices.IndexFunc(root.Commands(), func(c *cobra.Command) bool { return c.Name() == nouns[strings.ToLower(noun)] })
	if i < 0 {
		return nil
	}
	verbs := map[string][]string{"get": {"get", "show", "list"}, "describe": {"get", "show", "list"}, "top": {"top", "metrics"}}[verb]
	if verb == "get" && !named && (len(args) == 1 || strings.HasPrefix(args[1], "-")) {
		verbs = []string{"list"}
	}
	group := root.Commands()[i]
	for _, name := range slices.Concat(verbs, []string{verb}, meaning(group, verb)) {
		for _, sub := range group.Commands() {
			if sub.IsAvailableCommand() && sub.Name() == name {
				return []string{sub.CommandPath()}
			}
		}
	}
	return nil
}
