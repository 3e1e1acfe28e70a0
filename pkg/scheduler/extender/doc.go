// Package extender is the scheduler in a cluster: it gives the pods of kube-scheduler their GPUs.
// In: kube-scheduler's questions (filter, preempt, bind), pods, nodes and the configuration as the API server has
// them. Out: bindings with annotations, victims deleted, events, metrics, and an API that tells all.
//
// What the scheduler knows is rebuilt from the annotations of pods whenever it comes to lead;
// nothing else is stored. docs/adr/0014 says who leads, and why that is safe.
package extender
