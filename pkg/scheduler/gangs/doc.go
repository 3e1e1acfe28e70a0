// Package gangs decides which gang is next, which pods wait for cells, and where they run. It keeps the scheduler's state in a cluster.
// In: pods, nodes and the configuration as the API server has them, and the questions of the plugin in kube-scheduler. Out: places for
// pods, their claims, bindings with annotations, deletions of victims, events, metrics, and an API for people.
//
// The scheduler rebuilds its state from the claims of pods, or from the annotations of pods that expect no claim, whenever it becomes
// the leader. It stores no other state. docs/adr/0024 explains why it runs inside kube-scheduler.
package gangs
