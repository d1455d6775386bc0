{{- /* The Secret with the operator's certificate. */ -}}
{{- define "bigfleet.operatorSecret" -}}
{{ .Values.tls.secretName | default (printf "%s-operator-tls" .Release.Name) }}
{{- end -}}

{{- /* What both programs have around their rights: list of root, component, settings. The account, its lease, and who may use it. */ -}}
{{- define "bigfleet.account" -}}
{{- $root := index . 0 }}
{{- $name := printf "%s-%s" $root.Release.Name (index . 1) }}
{{- $labels := include "bigfleet.labels" (list $root (index . 1)) -}}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ $name }}
  namespace: {{ $root.Release.Namespace }}
  labels: {{- $labels | nindent 4 }}
  {{- with (index . 2).serviceAccount.annotations }}
  annotations: {{- toYaml . | nindent 4 }}
  {{- end }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: {{ $name }}
  labels: {{- $labels | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: {{ $name }}
subjects:
- kind: ServiceAccount
  name: {{ $name }}
  namespace: {{ $root.Release.Namespace }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: {{ $name }}
  namespace: {{ $root.Release.Namespace }}
  labels: {{- $labels | nindent 4 }}
rules:
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [create]
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  resourceNames: [{{ $name }}]
  verbs: [get, update]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: {{ $name }}
  namespace: {{ $root.Release.Namespace }}
  labels: {{- $labels | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: {{ $name }}
subjects:
- kind: ServiceAccount
  name: {{ $name }}
  namespace: {{ $root.Release.Namespace }}
{{- end -}}

{{- /* For Prometheus: list of root, component, port. */ -}}
{{- define "bigfleet.metricsService" -}}
{{- $root := index . 0 -}}
apiVersion: v1
kind: Service
metadata:
  name: {{ $root.Release.Name }}-{{ index . 1 }}
  namespace: {{ $root.Release.Namespace }}
  labels: {{- include "bigfleet.labels" . | nindent 4 }}
    bigfleet.lucy.sh/scrape: "true"
spec:
  clusterIP: None
  # Whoever waits for its turn is looked at as well.
  publishNotReadyAddresses: true
  selector: {{- include "bigfleet.selector" . | nindent 4 }}
  ports:
  - {name: metrics, port: {{ index . 2 }}, targetPort: metrics, protocol: TCP}
{{- end -}}

{{- /* The pod around a container: list of root, component, settings. */ -}}
{{- define "bigfleet.pod" -}}
{{- $root := index . 0 -}}
{{- $of := index . 2 -}}
serviceAccountName: {{ $root.Release.Name }}-{{ index . 1 }}
enableServiceLinks: false
terminationGracePeriodSeconds: {{ $of.terminationGracePeriodSeconds }}
securityContext: {{- include "bigfleet.podSecurity" $root | nindent 2 }}
{{- with $root.Values.image.pullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- include "bigfleet.placement" $of }}
{{- end -}}
