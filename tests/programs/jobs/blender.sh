# blender
timeout -k 5 150 $ON blender -b --factory-startup --python-expr 'import bpy
for i in range(30): bpy.ops.mesh.primitive_uv_sphere_add(location=(i,0,0))
s=bpy.context.scene; s.render.engine="CYCLES"; s.cycles.samples=2; s.cycles.use_denoising=False; s.render.resolution_x=160; s.render.resolution_y=120; s.render.filepath="//o.png"; bpy.ops.wm.save_as_mainfile(filepath="a.blend"); bpy.ops.render.render(write_still=True)' >log 2>&1
R=$?
ls *.png
exit $R
