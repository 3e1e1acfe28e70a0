package support

import (
	"path"
	"slices"

	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/kube"
)

// Plan lists the files that would be collected, without sending a request. Some names represent many files.
func Plan(o *Options) []Entry {
	var out []Entry
	add := func(part, name, what string) {
		if !slices.Contains(o.Without, part) {
			out = append(out, Entry{Name: path.Join(part, name), What: what})
		}
	}
	if o.Config != nil {
		for _, name := range config.Files() {
			add(PartConfiguration, "folder/"+name, "As it is in "+o.Folder+", secrets masked")
		}
		add(PartConfiguration, "effective.yaml", "The values in effect, and where each value comes from")
	}
	if o.Spec != nil {
		for _, n := range o.Spec.Nodes {
			what := machineFiles()
			for _, name := range sortedKeys(what) {
				add(PartMachines, n.Hostname+"/"+name, what[name])
			}
		}
		add(PartMachines, "status.json", "What \"paictl cluster status\" says")
	}
	for _, r := range o.Reports {
		add(PartReports, r.Name+".json", r.What)
	}
	if o.Cluster == nil && o.Spec == nil { // a master of the machines may lead to the API
		return out
	}
	add(PartConfiguration, "cluster/FILE", "The cluster's copy, secrets masked")
	add(PartConfiguration, "history.txt", "Revisions of the cluster's copy")
	for _, k := range clusterKinds() {
		add(PartKubernetes, "cluster/"+k.name+".txt", k.what)
	}
	for _, k := range namespacedKinds() {
		add(PartKubernetes, "NAMESPACE/"+k.name+".txt", k.what+", in "+kube.SystemNamespace+", "+kube.JobNamespace+", kube-system and namespaces of services")
	}
	add(PartKubernetes, "NAMESPACE/secrets.txt", "Secrets: names, types and keys, no values")
	add(PartServices, "status.json", "State and problems of each service")
	add(PartServices, "helm-revisions-NAMESPACE.txt", "Revisions of Helm releases")
	add(PartServices, "alerts.json", "Alerts that Alertmanager has")
	for _, name := range []string{"virtual-clusters.json", "queue.json", "nodes.json"} {
		add(PartScheduler, name, "What the scheduler says")
	}
	add(PartLogs, "NAMESPACE/POD/CONTAINER.log", "Logs of the platform's and Kubernetes' containers")
	for _, j := range o.Jobs {
		add(PartLogs, kube.JobNamespace+"/POD/CONTAINER.log", "Logs of the tasks of "+j.User+"/"+j.Name)
	}
	return out
}
