// Package gangs decides which gang is next, which pods wait for cells, and where they run. It keeps the scheduler's state in a
// cluster. In: pods, nodes and the configuration from the API server, and calls of the plugin in kube-scheduler. Out: places
// for pods, their claims, bindings with annotations, deletions of victims, events, metrics, and an API for users.
//
// When the scheduler becomes the leader, it rebuilds its state from the claims of pods. For pods that expect no claim, it uses
// their annotations. It stores no other state. docs/adr/0024 explains why it runs inside kube-scheduler.
package gangs
