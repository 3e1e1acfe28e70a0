// Package services starts, stops, removes and describes the platform's services.
// In: the configuration that the cluster holds, the catalogue made of it, and ways to keep
// releases and to ask for readiness. Out: releases in the cluster, and the events of a run.
package services
