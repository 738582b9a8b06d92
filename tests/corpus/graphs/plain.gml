graph [
 directed 0
 node [ id 1 label "a" ]
 node [ id 2 label "b" ]
 node [ id 3 ]
 edge [ source 1 target 2 weight 2.5 ]
 edge [ source 2 target 3 ]
]
